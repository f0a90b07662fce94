/** The search of the manual finds the page that a natural query is about. */
import { beforeAll, describe, expect, it, test } from 'bun:test'
import { loadManual } from '../src/site/manual/load-manual.ts'
import { createManual, type Manual } from '../src/site/manual/manual.ts'

let manual: Manual
beforeAll(async () => {
  manual = createManual(await loadManual())
})

const pagesFor = (query: string): string[] => {
  const html = manual.search(query, { version: '0', nonce: 'n' })
  const results = html.slice(html.indexOf('<main>'))
  return [...results.matchAll(/<p><a href="\/manual\/([^"#]+)/g)].map(([, page = '']) => page)
}

describe('the search of the manual', () => {
  test.each([
    ['monthly budget', 'budgets'],
    ['who spent', 'chargeback'],
    ['rotate vendor key', 'rotate-a-vendor-key'],
    ['docker', 'getting-started'],
    ['rollback', 'upgrade'],
    ['how do I make a backup', 'back-up'],
    ['restore database', 'back-up'],
    ['limiting requests per minute', 'limit-requests'],
    ['revoking tokens', 'tokens'],
    ['sso', 'administrators'],
    ['gdpr delete user data', 'privacy'],
    ['local llama', 'providers'],
    ['claude code', 'coding-agents'],
    ['several gateways', 'several-gateways'],
    ['graceful shutdown', 'operations'],
    ['rate limit per user', 'limit-requests'],
    ['cheapest provider first', 'route-requests'],
    ['caching of responses', 'cache-responses'],
    ['semantic cache', 'cache-responses'],
    ['what does a model cost', 'set-prices'],
    ['export usage to csv', 'chargeback'],
    ['grafana dashboards', 'monitor'],
    ['slack notification', 'alerts'],
    ['https certificate', 'behind-a-proxy'],
    ['nginx', 'behind-a-proxy'],
    ['which models can I use', 'models'],
    ['verify webhook signatures', 'webhooks'],
    ['store prompts encrypted', 'record-contents'],
    ['idempotency key', 'videos'],
    ['how long are files kept', 'operations'],
    ['ip whitelist for a token', 'projects'],
    ['run on all cpu cores', 'several-gateways'],
    ['read only role for viewers', 'administrators'],
    ['what does 429 mean', 'limit-requests'],
    ['structured outputs', 'tested-clients'],
    ['websockets', 'responses'],
    ['jaeger spans', 'trace-with-opentelemetry'],
    ['redis cluster', 'several-gateways'],
    ['disable a provider for maintenance', 'take-a-target-out-of-service'],
    ['adding a provider', 'providers'],
    ['env variables', 'settings'],
    ['invoice a team', 'chargeback'],
  ])('finds for "%s" the page %s among the first three', (query, page) => {
    expect([...new Set(pagesFor(query))].slice(0, 3)).toContain(page)
  })

  it('finds nothing for words that the manual does not have', () => {
    expect(pagesFor('zebra xylophone')).toEqual([])
  })
})

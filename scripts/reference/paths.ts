/** Every path of the API, from the OpenAPI document of a gateway in memory. */
import { tmpdir } from 'node:os'
import { loadConfig } from '../../src/config/load/load.ts'
import { createGateway } from '../../src/gateway/gateway.ts'
import { knownVendors } from '../../src/gateway/known-vendors.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { createLog } from '../../src/kit/log.ts'
import { code } from './table.ts'

type Operation = { tags: [string]; summary: string; security?: object[] }
type Document = { paths: Record<string, Record<string, Operation>> }

/** `token` is what most paths of a tag need, if it is not the usual one; others of the tag name theirs. */
export async function apiPaths(): Promise<{ tag: string; token: string | undefined; rows: string[][] }[]> {
  const document = await openApi()
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  const tags = [...new Set(operations.map(({ operation }) => operation.tags[0]))]
  return tags.map((tag) => {
    const own = operations.filter(({ operation }) => operation.tags[0] === tag)
    const token = mostCommon(own.map(({ operation }) => tokenOf(operation)))
    const needsOf = (operation: Operation) => {
      const needs = tokenOf(operation)
      return needs === token ? '' : ` (token: ${needs})`
    }
    /** What most paths do follows from their names, and `/docs` says it. */
    const saidOf = ({ path, method, operation }: (typeof own)[number], { length }: typeof own) => {
      const isClear = tag !== 'Gateway' || length > 1 || isNamedBy(path, operation.summary)
      const summary = isClear ? '' : ` ${operation.summary}`
      return `${code(method)}${summary}${needsOf(operation)}`
    }
    const rows = [...Map.groupBy(own, ({ path }) => path)].map(([path, methods]) => [
      path,
      methods
        .map((one) => saidOf(one, methods))
        .join(', ')
        .replace(/^`GET`\s*/, methods.length === 1 ? '' : '$&'),
    ])
    return { tag, token: token === 'yes' ? undefined : token, rows }
  })
}

/** Words of a summary that the method says, or that say nothing. */
const COMMON_WORDS = new Set(
  'a an and as at by create delete for from get in is its list look make of one or post read retrieve the their this to what with'.split(
    ' ',
  ),
)

/** Whether at least half of the words of the summary stand in the path. */
function isNamedBy(path: string, summary: string): boolean {
  const words = summary
    .toLowerCase()
    .split(/\W+/)
    .filter((word) => word !== '' && !COMMON_WORDS.has(word))
  const named = words.filter((word) => path.toLowerCase().includes(word.replace(/(?:s|ed|ing)$/, '')))
  return named.length * 2 >= words.length
}

const mostCommon = (names: string[]): string =>
  [...new Set(names)].reduce(
    (most, name) => (countOf(names, name) > countOf(names, most) ? name : most),
    names[0] ?? '',
  )
const countOf = (names: string[], name: string): number => names.filter((other) => other === name).length

/** The document of a gateway in memory. */
export async function openApi(): Promise<Document> {
  const environment = { GATEHOUSE_DATA_DIR: tmpdir(), GATEHOUSE_DISCOVER: 'off' }
  const clock = systemClock
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const config = loadConfig({ environment, cwd: tmpdir(), flags: {}, vendors: knownVendors({}) })
  const gateway = await createGateway({
    config,
    environment: {},
    log,
    store_url: 'sqlite::memory:',
    version: '0',
    is_idle: true,
  })
  try {
    const response = await gateway.fetch(new Request('http://127.0.0.1/openapi.json'))
    return (await response.json()) as Document
  } finally {
    await gateway.close({ deadline_ms: 0 })
  }
}

function tokenOf({ security }: Operation): string {
  if (security === undefined) return 'yes'
  if (security.length === 0) return 'no'
  const isOptional = security.some((scheme) => Object.keys(scheme).length === 0)
  if (security.some((scheme) => 'admin_token' in scheme)) return isOptional ? 'no' : 'admin token or session'
  return isOptional ? 'yes, or a signed link' : 'yes'
}

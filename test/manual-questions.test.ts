/** The sandbox answers questions about Gatehouse with the right section of the manual. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { createManual, type Manual } from '../packages/sandbox/src/manual-search.ts'
import { loadManual } from '../src/site/manual/load-manual.ts'

let manual: Manual
beforeAll(async () => {
  manual = createManual(await loadManual())
})

describe('the search of the sandbox in the manual', () => {
  test.each([
    ['What is Gatehouse?', 'getting-started'],
    ['How do I start Gatehouse?', 'getting-started'],
    ['Where do I get the first token?', 'getting-started'],
    ['Which commands does bin/gatehouse have?', 'getting-started'],
    ['How do I make my first video?', 'first-video'],
    ['How do I configure Gatehouse?', 'configuration'],
    ['How do I check a configuration file?', 'configuration'],
    ['How do I keep secrets out of the file?', 'configuration'],
    ['How do I change the configuration while the gateway runs?', 'configuration'],
    ['How do I add a provider?', 'providers'],
    ['What is a preset?', 'provider-kinds'],
    ['What are quirks?', 'providers'],
    ['How do I use OpenAI, Anthropic or Gemini?', 'providers'],
    ['Can another Gatehouse be a provider?', 'providers'],
    ['Where do provider keys go?', 'providers'],
    ['How do I cancel a video?', 'videos'],
    ['How often should I poll a task?', 'videos'],
    ['What happens to a video when the gateway crashes?', 'durability'],
    ['What happens when a finished file cannot be downloaded?', 'durability'],
    ['What happens at the deadline of a task?', 'durability'],
    ['How do I use Runway?', 'video-vendors'],
    ['When is an order sent a second time?', 'video-vendors'],
    ['How do I use fal?', 'video-packages'],
    ['How do I use Veo on Vertex AI?', 'video-packages'],
    ['How do I make a 3D model?', '3d'],
    ['How do I use Meshy?', '3d'],
    ['Which fail codes are there?', 'fail-codes'],
    ['What does submit_outcome_unknown mean?', 'fail-codes'],
    ['Was I charged for a task that failed?', 'fail-codes'],
    ['How do I verify a webhook in Python?', 'webhooks'],
    ['How often is a webhook tried?', 'webhooks'],
    ['Is the sandbox a real model?', 'sandbox'],
    ['Which models does the sandbox have?', 'sandbox'],
    ['Which directives does the sandbox know?', 'sandbox'],
    ['How do I switch the sandbox off?', 'sandbox'],
    ['How do I back up the store?', 'back-up'],
    ['How do I upgrade Gatehouse?', 'upgrade'],
    ['Does Gatehouse speak TLS?', 'behind-a-proxy'],
    ['How do I allow browsers to call the gateway?', 'behind-a-proxy'],
    ['How do I keep finished files in S3?', 'operations'],
    ['How do I resume a task?', 'operations'],
    ['How do I use PostgreSQL instead of SQLite?', 'several-gateways'],
    ['What is in the log?', 'operations'],
    ['How do I stop the gateway?', 'operations'],
    ['How do I know that the gateway is alive?', 'operations'],
    ['How do I use Gatehouse with the AI SDK?', 'client-package'],
  ])('answers %j from the page "%s"', (question, page) => {
    const [found] = manual.search(question, 1)
    expect([found?.section.page, found?.isGood]).toEqual([page, true])
  })

  test.each(['Write a poem about the sea', 'What is the capital of France?', 'Tell me about volcanoes'])(
    'does not answer %j',
    (question) => {
      expect(manual.search(question, 1)[0]?.isGood ?? false).toBe(false)
    },
  )
})

/** Batches in tests: the SDKs in front of a gateway in memory, and the results as objects. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI, { toFile } from 'openai'
import type { TestGateway } from './gateway.ts'

type Options = { apiKey?: string }

const fetchOf = (gateway: TestGateway) => (url: unknown, init: unknown) =>
  gateway.instance.fetch(new Request(url as string, init as RequestInit))

export const anthropic = (gateway: TestGateway, { apiKey = gateway.token }: Options = {}): Anthropic =>
  new Anthropic({ apiKey, baseURL: 'http://gateway.test', maxRetries: 0, fetch: fetchOf(gateway) })

export const openai = (gateway: TestGateway, { apiKey = gateway.token }: Options = {}): OpenAI =>
  new OpenAI({ apiKey, baseURL: 'http://gateway.test/v1', maxRetries: 0, fetch: fetchOf(gateway) })

export type ResultLine = {
  id: string
  custom_id: string
  response: { status_code: number; request_id: string; body: Record<string, unknown> } | null
  error: { code: string; message: string } | null
  called_again?: boolean
}

export const linesIn = <Line = ResultLine>(jsonl: string): Line[] =>
  jsonl
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)

export async function resultsOf(client: OpenAI, file_id: string | null | undefined): Promise<ResultLine[]> {
  return file_id ? linesIn(await (await client.files.content(file_id)).text()) : []
}

export const chatLine = (custom_id: string, content = 'Hello', model = 'sandbox/general') => ({
  custom_id,
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model, max_tokens: 20, messages: [{ role: 'user', content }] },
})

export async function upload(client: OpenAI, lines: readonly unknown[]): Promise<string> {
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  const file = await client.files.create({ file: await toFile(Buffer.from(text), 'lines.jsonl'), purpose: 'batch' })
  return file.id
}

export async function createBatch(client: OpenAI, lines: readonly unknown[], more: object = {}) {
  const input_file_id = await upload(client, lines)
  return client.batches.create({ input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h', ...more })
}

/** Lets the batches run until this is true. */
export async function runUntil(gateway: TestGateway, isReached: () => Promise<boolean>): Promise<void> {
  for (let round = 0; round < 2_000; round++) {
    if (await isReached()) return
    await gateway.instance.batches.idle()
    gateway.clock.advance(1_000)
  }
  throw new Error('The batches did not come so far.')
}

const ENDED = ['completed', 'failed', 'cancelled', 'expired']

export async function endOf(gateway: TestGateway, client: OpenAI, batch_id: string) {
  await runUntil(gateway, async () => ENDED.includes((await client.batches.retrieve(batch_id)).status))
  return client.batches.retrieve(batch_id)
}

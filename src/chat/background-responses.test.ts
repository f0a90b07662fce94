/** What bounds a token's responses in the background, and what becomes of them when it is revoked. */
import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { testPipeline } from '../../test/kit/pipeline.ts'
import type { Context } from '../http/context.ts'
import { createLog } from '../kit/log.ts'
import { catalogueModel, createCatalogue } from '../models/catalogue.ts'
import type { ChatCall } from '../providers/provider.ts'
import type { ChatChunk } from '../spec/chat-completion.ts'
import type { ResponseRun, ResponseRunStore, StoredResponse } from '../store/store.ts'
import { createBackground } from './background-responses.ts'
import { makeResponse, STOPPED } from './background-run.ts'
import { createChat } from './chat.ts'
import type { ReadResponse } from './dialects/responses.ts'
import { clientTools } from './dialects/responses-tools.ts'
import { createStoredResponses } from './stored-responses.ts'

/** `isSilent`: the model says nothing, and how many tokens it was sent is never known. */
type Given = { waiting?: number; isRevoked?: boolean; isSilent?: boolean }

function house({ waiting = 0, isRevoked = false, isSilent = false }: Given) {
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write: () => {} })
  const added: unknown[] = []
  const ended: unknown[] = []
  const clientRequest: string[] = []
  const released: string[] = []
  const asked = Promise.withResolvers<void>()
  const runs: ResponseRunStore = {
    add: async ({ response }) => void added.push(response.response_id),
    claim: async () => [],
    renew: async () => true,
    tell: async () => true,
    end: async (_, { response }) => ended.push(response) > 0,
    release: async ({ response_id }) => void released.push(response_id),
    cancel: async () => false,
    isRunning: async () => false,
    waiting: async () => waiting,
    events: async () => [],
    earliest: async () => null,
  }
  const storedResponses = createStoredResponses({
    store: {
      add: async () => {},
      find: async () => [],
      length: async () => 0,
      conversation: async () => [],
      remove: async () => false,
      forget: async () => 0,
    },
    settings: () => ({ keep_days: 30 }),
    clock,
  })
  const provider = {
    id: 'v',
    kind: 'test',
    chat: {
      whole: () => Promise.reject(new Error('not asked for')),
      async *chunks({ request }: ChatCall, signal: AbortSignal): AsyncGenerator<ChatChunk[]> {
        clientRequest.push(request.model)
        asked.resolve()
        if (isSilent) await new Promise((_, reject) => signal.addEventListener('abort', reject))
        throw new Error('It has no answer here.')
      },
    },
  }
  const catalogue = createCatalogue({ clock })
  const targets = [{ provider, model: 'm' }]
  catalogue.replace([catalogueModel({ id: 'v/m', config: {}, targets, created: 0, when_retired: 'refuse' })])
  const { pipeline } = testPipeline({ catalogue, clock })
  const count = async (texts: string[]) => (isSilent ? new Promise<never>(() => {}) : texts.map(() => 1))
  const tokenizer = { count, close() {} }
  const chat = createChat({ tokenizer, clock })
  const notifications = { tell: () => {}, next: async () => {} }
  const parts = { runs, storedResponses, pipeline, chat, isRevoked: async () => isRevoked, notifications, clock, log }
  return {
    parts,
    added,
    ended,
    clientRequest,
    released,
    asked: asked.promise,
    background: createBackground({ ...parts, settings: { keep_alive_seconds: 15 } }),
  }
}

const caller = { token_id: 'tok_a', mayUseModel: () => true, mayUseFamily: () => true }
const read: ReadResponse = {
  clientRequest: { model: 'v/m', input: 'Hi', background: true },
  before: { items: [], ids: [] },
  input: [{ type: 'message', role: 'user', content: 'Hi' }],
  request: { model: 'v/m', messages: [{ role: 'user', content: 'Hi' }] },
  names: clientTools({}).names,
}
const stored: StoredResponse = {
  response_id: 'resp_abcdefghijklmnopqrstuvwx',
  token_id: 'tok_a',
  previous_id: null,
  created_at: 1,
  expires_at: 2,
  input: [{ type: 'message', role: 'user', content: 'Hi' }],
  response: { id: 'resp_abcdefghijklmnopqrstuvwx', model: 'v/m', status: 'queued' },
}
const run: ResponseRun = {
  response: stored,
  request: { model: 'v/m', background: true },
  attempts: 1,
  fence: 1,
  told: -1,
}

describe('of one token', () => {
  const context = { caller, signal: new AbortController().signal } as unknown as Context

  test('a thousand may wait', async () => {
    const { background, added } = house({ waiting: 999 })
    expect((await background.take(read, context)).status).toBe(200)
    expect(added).toHaveLength(1)
  })

  test('one more is refused, and nothing is written down', async () => {
    const { background, added } = house({ waiting: 1_000 })
    const refusal = await background.take(read, context).catch((error) => error)
    expect(refusal).toMatchObject({ code: 'rate_limit_exceeded', detail: { retry_after: 60 } })
    expect(added).toEqual([])
  })
})

describe('one whose turn has come', () => {
  test('is asked for', async () => {
    const { parts, clientRequest } = house({})
    await makeResponse(parts, run, new AbortController())
    expect(clientRequest).toEqual(['v/m'])
  })

  test('fails where its token was revoked since, and no model is asked', async () => {
    const { parts, clientRequest, ended } = house({ isRevoked: true })
    await makeResponse(parts, run, new AbortController())
    expect(clientRequest).toEqual([])
    expect(ended).toMatchObject([{ status: 'failed', error: { message: expect.stringContaining('revoked') } }])
  })
})

test('one that is being made when the gateway is stopped is released before its usage is known', async () => {
  const { parts, released, ended, asked } = house({ isSilent: true })
  const control = new AbortController()
  const made = makeResponse(parts, run, control)
  await asked
  control.abort(STOPPED)
  await made
  expect([released, ended]).toEqual([[stored.response_id], []])
})

/** Limits of a token's background responses, and what a revoked token means for them. */
import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { NO_FILES } from '../../../test/kit/no-files.ts'
import { testCall, testPipeline } from '../../../test/kit/pipeline.ts'
import { NO_QUOTA } from '../../../test/kit/quota.ts'
import { STOPPED } from '../../jobs/job-loop.ts'
import { createLog } from '../../kit/log.ts'
import { catalogueModel, createCatalogue } from '../../models/catalogue.ts'
import { clientTools } from '../../protocols/responses/client/tools.ts'
import type { ChatChunk } from '../../protocols/shared/canonical.ts'
import type { ChatCall } from '../../providers/provider.ts'
import type { StoredResponse } from '../../store/responses/response-row.ts'
import type { ResponseRun, ResponseRunStore } from '../../store/responses/response-store.ts'
import { createBackground } from './background-responses.ts'
import { generateResponse } from './background-run.ts'
import { createChat } from './chat.ts'
import { createConversations } from './conversations.ts'
import type { ReadResponse } from './dialects/responses.ts'
import { createStoredResponses } from './stored-responses.ts'

/** `isSilent`: the model says nothing, and how many tokens it was sent is never known. */
type Given = { waiting?: number; isRevoked?: boolean; isSilent?: boolean }

function setUp({ waiting = 0, isRevoked = false, isSilent = false }: Given) {
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
    save: async () => true,
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
      textLength: async () => 0,
      conversation: async () => [],
      remove: async () => false,
      deleteExpired: async () => 0,
    },
    settings: () => ({ keep_days: 30, store_default: true }),
    quota: NO_QUOTA,
    clock,
  })
  // These responses continue no conversation.
  const none = () => Promise.reject(new Error('not expected'))
  const conversations = createConversations({
    store: {
      add: none,
      find: none,
      update: none,
      remove: none,
      lock: none,
      renew: none,
      unlock: none,
      append: none,
      removeItem: none,
      items: none,
      item: none,
      page: none,
      deleteExpired: async () => 0,
    },
    settings: () => ({ keep_days: 30 }),
    quota: NO_QUOTA,
    clock,
    log,
  })
  const provider = {
    id: 'v',
    kind: 'test',
    chat: {
      complete: () => Promise.reject(new Error('not expected')),
      async *chunks({ request }: ChatCall, signal: AbortSignal): AsyncGenerator<ChatChunk[]> {
        clientRequest.push(request.model)
        asked.resolve()
        if (isSilent) await new Promise((_, reject) => signal.addEventListener('abort', reject))
        throw new Error('This test has no answer.')
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
  const notifications = { notify: () => {}, next: async () => {} }
  const parts = {
    runs,
    storedResponses,
    conversations,
    fileInputs: NO_FILES,
    quota: NO_QUOTA,
    pipeline,
    chat,
    callerOf: async () => (isRevoked ? undefined : caller),
    notifications,
    clock,
    log,
  }
  return {
    parts,
    added,
    ended,
    clientRequest,
    released,
    asked: asked.promise,
    background: createBackground(parts),
  }
}

const caller = { token_id: 'tok_a', mayUseModel: () => true, mayUseFamily: () => true }
const read: ReadResponse = {
  clientRequest: { model: 'v/m', input: 'Hi', background: true },
  continued: undefined,
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
  last_number: -1,
}

const runContext = () => ({ signal: new AbortController().signal, abort: () => {} })

describe('the queue of one token', () => {
  const call = testCall(caller)

  test('holds a thousand responses', async () => {
    const { background, added } = setUp({ waiting: 999 })
    expect(await background.submit(read, call)).toMatchObject({ body: { status: 'queued' } })
    expect(added).toHaveLength(1)
  })

  test('rejects one more, and stores nothing', async () => {
    const { background, added } = setUp({ waiting: 1_000 })
    const refusal = await background.submit(read, call).catch((error) => error)
    expect(refusal).toMatchObject({ code: 'rate_limit_exceeded', detail: { retry_after: 60 } })
    expect(added).toEqual([])
  })
})

describe('a claimed response', () => {
  test('calls the model', async () => {
    const { parts, clientRequest } = setUp({})
    await generateResponse(parts, run, runContext())
    expect(clientRequest).toEqual(['v/m'])
  })

  test('fails without a call when its token was revoked meanwhile', async () => {
    const { parts, clientRequest, ended } = setUp({ isRevoked: true })
    await generateResponse(parts, run, runContext())
    expect(clientRequest).toEqual([])
    expect(ended).toMatchObject([{ status: 'failed', error: { message: expect.stringContaining('revoked') } }])
  })
})

test('a response interrupted by a stop rejects before its usage is known, so that it can be released', async () => {
  const { parts, ended, asked } = setUp({ isSilent: true })
  const control = new AbortController()
  const generated = generateResponse(parts, run, { signal: control.signal, abort: (reason) => control.abort(reason) })
  await asked
  control.abort(STOPPED)
  expect(await generated.catch((error: unknown) => error)).toBe(STOPPED)
  expect(ended).toEqual([])
})

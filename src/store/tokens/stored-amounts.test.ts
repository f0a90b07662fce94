/** How much each token has stored, tested on every engine. */
import { afterEach, describe, expect, test } from 'bun:test'
import { ENGINES } from '../../../test/kit/engines.ts'
import { blankTask } from '../../families/tasks/lifecycle.ts'
import type { Task } from '../../spec/task.ts'
import type { StoredResponse } from '../responses/response-row.ts'

const TEXT = 'ü 中 😀'
const sizeOf = (...values: unknown[]) =>
  values.reduce<number>((bytes, value) => bytes + Buffer.byteLength(JSON.stringify(value)), 0)
const NOTHING = { rows: 0, bytes: 0 }

const answer = (name: string, token_id = 'tok_a'): StoredResponse => ({
  response_id: `resp_${name}`,
  token_id,
  previous_id: null,
  created_at: 1_000,
  expires_at: 9_000,
  input: [{ type: 'message', content: TEXT }],
  response: { id: `resp_${name}`, output: [TEXT] },
})

const conversation = (token_id: string) => ({
  conversation_id: `conv_${token_id}`,
  token_id,
  created_at: 1_000,
  expires_at: 9_000,
  metadata: { topic: TEXT },
})
const ITEMS = [
  { id: 'msg_1', content: TEXT },
  { id: 'msg_2', content: 'x'.repeat(5_000) },
]

function task(name: string, change: Partial<Task> = {}): Task {
  return blankTask({
    task_id: `task_${name}`,
    token_id: 'tok_a',
    family: 'video-generation',
    model: 'm',
    submit_time: 1_000,
    request: { prompt: TEXT },
    base_url: '',
    deadline_at: 4_600,
    due_ms: 10_000,
    ...change,
  })
}

for (const engine of ENGINES) {
  describe(engine.name, () => {
    afterEach(() => engine.cleanup())

    test('a token without anything has stored nothing', async () => {
      const { amounts } = await engine.open()
      expect(await amounts.responses('tok_a')).toEqual(NOTHING)
      expect(await amounts.tasks('tok_a', 0)).toEqual(NOTHING)
      expect(await amounts.keys('tok_a')).toEqual(NOTHING)
    })

    test('counts responses, conversations and items of the token in bytes, and frees what is deleted', async () => {
      const { amounts, responses, conversations } = await engine.open()
      const one = answer('one')
      await responses.add(one, [])
      await responses.add(answer('theirs', 'tok_b'), [])
      const responseBytes = sizeOf(one.input, one.response)
      expect(await amounts.responses('tok_a')).toEqual({ rows: 1, bytes: responseBytes })
      await conversations.add(conversation('tok_a'), ITEMS)
      await conversations.add(conversation('tok_b'), ITEMS)
      const whole = responseBytes + sizeOf({ topic: TEXT }, ...ITEMS)
      expect(await amounts.responses('tok_a')).toEqual({ rows: 4, bytes: whole })
      await conversations.removeItem('conv_tok_a', 'msg_2')
      expect(await amounts.responses('tok_a')).toEqual({ rows: 3, bytes: whole - sizeOf(ITEMS[1]) })
      await conversations.remove('conv_tok_a', 'tok_a')
      await responses.remove('resp_one', 'tok_a')
      expect(await amounts.responses('tok_a')).toEqual(NOTHING)
    })

    test('counts the request and the events of a response in the background, until they are deleted', async () => {
      const { amounts, responses, responseRuns } = await engine.open()
      const response = answer('one')
      const request = { instructions: TEXT.repeat(1_000) }
      await responseRuns.add({ response, request, events: { last_number: 1, events: TEXT }, due_ms: 1 }, [])
      const [run] = await responseRuns.claim({ now_ms: 5, until_ms: 9, limit: 1 })
      if (!run) throw new Error('nothing was claimed')
      await responseRuns.save(keyOf(run), { events: { last_number: 2, events: TEXT } })
      const bytes = sizeOf(response.input, response.response) + 2 * Buffer.byteLength(TEXT)
      expect(await amounts.responses('tok_a')).toEqual({ rows: 1, bytes: bytes + sizeOf(request) })
      await responseRuns.end(keyOf(run), { response: response.response })
      expect(await amounts.responses('tok_a')).toEqual({ rows: 1, bytes })
      await responses.remove('resp_one', 'tok_a')
      expect(await amounts.responses('tok_a')).toEqual(NOTHING)
    })

    test('counts unfinished tasks, their inputs, and the requests of tasks since a time', async () => {
      const { amounts, tasks } = await engine.open()
      const inputs = { image: 'x'.repeat(10_000) }
      const request = { prompt: TEXT, metadata: { text: TEXT } }
      await tasks.add({ task: task('one', { request }), inputs })
      await tasks.add({ task: task('old', { submit_time: 999 }) })
      await tasks.add({ task: task('theirs', { token_id: 'tok_b' }), inputs })
      expect(await amounts.tasks('tok_a', 1_000)).toEqual({ rows: 2, bytes: sizeOf(request, inputs) })
      await tasks.save({ task_id: 'task_one', fence: 0 }, { status: 'FAILURE', finish_time: 5, due_ms: null })
      expect(await amounts.tasks('tok_a', 1_000)).toEqual({ rows: 1, bytes: sizeOf(request) })
      expect(await amounts.tasks('tok_a', 1_001)).toEqual({ rows: 1, bytes: 0 })
    })

    test('a deleted task keeps nothing of its request', async () => {
      const { amounts, tasks } = await engine.open()
      await tasks.add({ task: task('one', { request: { metadata: { text: 'x'.repeat(10_000) } } }) })
      await tasks.save({ task_id: 'task_one', fence: 0 }, { status: 'FAILURE', finish_time: 5, due_ms: null })
      expect((await amounts.tasks('tok_a', 0)).bytes).toBeGreaterThan(10_000)
      await tasks.remove('task_one', 'tok_a', 6)
      expect(await amounts.tasks('tok_a', 0)).toEqual({ rows: 0, bytes: '{}'.length })
    })

    test('counts idempotency keys of the token, until they are deleted', async () => {
      const { amounts, tasks } = await engine.open()
      const idempotency = { key: 'k', body_hash: 'h', expires_at: 2_000 }
      await tasks.add({ task: task('one'), idempotency })
      await tasks.add({ task: task('two'), idempotency: { ...idempotency, key: 'l' } })
      await tasks.add({ task: task('theirs', { token_id: 'tok_b' }), idempotency })
      expect(await amounts.keys('tok_a')).toEqual({ rows: 2, bytes: 0 })
      await tasks.deleteExpiredKeys(2_000, 10)
      expect(await amounts.keys('tok_a')).toEqual(NOTHING)
    })
  })
}

const keyOf = ({ response, fence }: { response: StoredResponse; fence: number }) => ({
  response_id: response.response_id,
  fence,
})

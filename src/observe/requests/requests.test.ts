import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import type { CallRecord } from '../../calls/call.ts'
import type { FinishedRequest } from '../../http/context.ts'
import { createLog } from '../../kit/log.ts'
import { createRequests, type EndedRequest, type Recorder } from './requests.ts'

function setUp(...more: Recorder[]) {
  const clock = manualClock()
  let logged = ''
  const write = (text: string) => {
    logged += text
  }
  const log = createLog({ clock, level: 'error', pretty: false, write })
  const lists: (readonly EndedRequest[])[] = []
  const offsets: number[] = []
  const recorder: Recorder = (ended, { offset }) => {
    lists.push(ended)
    offsets.push(offset)
  }
  const requests = createRequests({ recorders: [...more, recorder], clock, log })
  return { clock, requests, lists, offsets, logged: () => logged }
}

const finished = (record?: CallRecord, path = '/') =>
  ({ context: { record }, path, status: 200, outcome: 'done', total_ms: 1 }) as unknown as FinishedRequest

const callOf = (more: Partial<CallRecord> = {}, controller = new AbortController()) =>
  ({ call: { signal: controller.signal, is_detached: undefined, ...more.call }, ...more }) as unknown as CallRecord

describe('requests that have ended', () => {
  test('are recorded together after 20 ms', () => {
    const { clock, requests, lists } = setUp()
    for (let count = 0; count < 3; count++) requests.requestFinished(finished())
    clock.advance(19)
    expect(lists).toEqual([])
    clock.advance(1)
    expect(lists.map(({ length }) => length)).toEqual([3])
    requests.requestFinished(finished())
    clock.advance(20)
    expect(lists.map(({ length }) => length)).toEqual([3, 1])
  })

  test('are recorded at once where there are 64', () => {
    const { requests, lists } = setUp()
    for (let count = 0; count < 130; count++) requests.requestFinished(finished())
    expect(lists.map(({ length }) => length)).toEqual([64, 64])
    requests.flush()
    expect(lists.map(({ length }) => length)).toEqual([64, 64, 2])
    requests.flush()
    expect(lists).toHaveLength(3)
  })

  test('wait for the settlement of their call, and are recorded once with it', () => {
    const { requests, lists } = setUp()
    const record = callOf({ is_open: true })
    const request = finished(record)
    requests.requestFinished(request)
    requests.flush()
    expect(lists).toEqual([])
    record.is_open = false
    requests.calls.finished?.(record)
    requests.flush()
    expect(lists).toMatchObject([[{ request, record }]])
  })

  test('have the time of their end, and whether their client had left by then', () => {
    const { clock, requests, lists, offsets } = setUp()
    const [left, stayed] = [new AbortController(), new AbortController()]
    left.abort({ code: 'client_closed_request' })
    const at = clock.steady()
    requests.requestFinished(finished(callOf({}, left)))
    requests.requestFinished(finished(callOf({}, stayed)))
    stayed.abort({ code: 'client_closed_request' })
    clock.jump(5_000)
    clock.advance(20)
    expect(lists[0]?.map((one) => [one.at, one.left])).toEqual([
      [at, 'client_closed_request'],
      [at, undefined],
    ])
    expect(offsets).toEqual([5_000])
  })

  test('are recorded by the others where a recorder fails for one of them', () => {
    const seen: string[] = []
    const { requests, lists, logged } = setUp(
      () => {
        throw new Error('of the list')
      },
      (ended, { each }) =>
        each(ended, ({ request }) => {
          if (request?.path === '/1') throw new Error('of one')
          seen.push(request?.path ?? '')
        }),
    )
    for (const path of ['/0', '/1', '/2']) requests.requestFinished(finished(undefined, path))
    requests.flush()
    expect(seen).toEqual(['/0', '/2'])
    expect(lists[0]).toHaveLength(3)
    expect(logged().match(/"event":"[^"]+"/g)).toEqual([
      '"event":"a recorder of requests failed"',
      '"event":"a request could not be recorded"',
    ])
  })
})

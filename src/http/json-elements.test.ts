/** Elements of a list of a JSON body that arrives in pieces: as the whole body has them, wherever it is cut. */
import { describe, expect, it } from 'bun:test'
import { systemClock } from '../kit/clock.ts'
import { streamElements } from './json-elements.ts'

const LIMITS = {
  member: 'requests',
  max_bytes: 10_000_000,
  most_element_bytes: 100,
  pause_seconds: 60,
  total_seconds: 60,
  clock: systemClock,
}

async function read(text: string, size = text.length) {
  const bytes = new TextEncoder().encode(text)
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size))
      controller.close()
    },
  })
  const elements = streamElements(new Request('http://gateway.test', { method: 'POST', body }), LIMITS)
  const found: string[] = []
  for (;;) {
    const { done, value } = await elements.next()
    if (done) return { found, rest: value }
    found.push(...value.map(String))
  }
}

const BODY = `{"requests0": "x",
  "requests" : [ {"a": "] , } \\" \\\\", "b": [[1], {"requests": [2]}]},
   7 , null,"é\\u00e9", [ ],
   {} ], "more": {"requests": [3, 4]}}`

describe('the elements of a list', () => {
  it('are those of the whole body, each on one line, wherever it is cut', async () => {
    const { requests, ...more } = JSON.parse(BODY)
    const rest = { ...more, requests: requests.map(() => 0) }
    for (let size = 1; size <= BODY.length; size++) {
      const got = await read(BODY, size)
      expect(got.found.map((text) => JSON.parse(text))).toEqual(requests)
      expect(got.found.join('')).not.toContain('\n')
      expect(got.rest).toEqual(rest)
    }
  })

  it('are none where the list is empty, or is not there', async () => {
    expect(await read('{"requests": [ ]}', 1)).toEqual({ found: [], rest: { requests: [] } })
    expect(await read('{"other": [1]}', 1)).toEqual({ found: [], rest: { other: [1] } })
  })

  it.each([
    ['a body that is not JSON', '{"requests": [1}', 'invalid_json'],
    ['a body that is no object', '[1]', 'invalid_type'],
    ['a list that stands twice', '{"requests": [1], "requests": [2]}', 'invalid_value'],
    ['a body with much beside the list', `{"a": "${'x'.repeat(1_100_000)}"}`, 'request_too_large'],
  ])('are refused of %s', async (_, text, code) => {
    await expect(read(text, 1_000)).rejects.toMatchObject({ code })
  })

  it('are as large as the limit, and no larger', async () => {
    const bodyOf = (bytes: number) => `{"requests": [1, "${'x'.repeat(bytes - 2)}"]}`
    expect((await read(bodyOf(100), 7)).found[1]).toHaveLength(100)
    await expect(read(bodyOf(101), 7)).rejects.toThrow('"requests[1]" has more than 100 bytes')
  })
})

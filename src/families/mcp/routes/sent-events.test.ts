/** The events of sessions, which are bounded. */
import { describe, expect, it } from 'bun:test'
import { createEventStores } from './sent-events.ts'

const message = (text: string) => ({ jsonrpc: '2.0' as const, method: 'notifications/message', params: { text } })
async function after(events: ReturnType<ReturnType<typeof createEventStores>>, id: string) {
  const sent: unknown[] = []
  const stream = await events.replayEventsAfter(id, { send: async (_, one) => void sent.push(one) })
  return { stream, sent }
}

describe('the events of a session', () => {
  it('are sent again for one stream, without those that have no message', async () => {
    const events = createEventStores()()
    const first = await events.storeEvent('a', {} as never)
    await events.storeEvent('b', message('other'))
    await events.storeEvent('a', {} as never)
    await events.storeEvent('a', message('own'))
    expect(await after(events, first)).toEqual({ stream: 'a', sent: [message('own')] })
  })

  it('are at most 256, and of a gap none is sent', async () => {
    const events = createEventStores()()
    const ids: string[] = []
    for (let count = 0; count < 257; count++) ids.push(await events.storeEvent('a', message(`${count}`)))
    expect([events.has(ids[0] ?? ''), (await after(events, ids[0] ?? '')).sent.length]).toEqual([true, 256])
    await events.storeEvent('a', message('one more'))
    expect([events.has(ids[0] ?? ''), events.has(ids[1] ?? '')]).toEqual([false, true])
    await expect(after(events, ids[0] ?? '')).rejects.toThrow('not kept')
  })

  it('have at most 1 MiB of text, and those of all sessions together a limit', async () => {
    const create = createEventStores({ most: 1_500_000 })
    const [one, two] = [create(), create()]
    const first = await one.storeEvent('a', {} as never)
    await one.storeEvent('a', message('x'.repeat(1_000_000)))
    expect(one.has(first)).toBe(true)
    const start = await two.storeEvent('a', {} as never)
    const large = await two.storeEvent('a', message('x'.repeat(1_000_000)))
    expect([two.has(start), two.has(large), one.has(first)]).toEqual([false, true, true])
    one.forget()
    const next = await two.storeEvent('a', message('x'.repeat(1_000_000)))
    expect([one.has(first), two.has(large), (await after(two, large)).sent.length, two.has(next)]).toEqual([
      false,
      true,
      1,
      true,
    ])
    await two.storeEvent('a', message('x'.repeat(1_100_000)))
    expect(two.has(large)).toBe(false)
  })

  it.each(['', 'a', '1', '1_', '-1_a', '2_a', '1e3_a', '99999999999999999_a'])('have no id %j', async (id) => {
    const events = createEventStores()()
    await events.storeEvent('a', message('one'))
    expect(events.has(id)).toBe(false)
  })
})

import { expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { unixSeconds } from '../kit/clock.ts'
import { createLog } from '../kit/log.ts'
import { createLastUsed } from './grant.ts'

type Row = { token_id: string; last_used_at: number }

function setUp(touch: (rows: readonly Row[]) => Promise<void>) {
  const clock = manualClock()
  const log = createLog({ clock, level: 'silent', pretty: false, write() {} })
  const { used, close } = createLastUsed({ store: { touch }, clock, log })
  const advance = async (ms: number) => {
    clock.advance(ms)
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
  return { clock, used, close, advance }
}

test('the last use of a token is written once for all its uses, with the time of the last one', async () => {
  const written: Row[][] = []
  const { clock, used, advance } = setUp(async (rows) => void written.push([...rows]))
  const start = unixSeconds(clock)
  used('tok_a')
  await advance(2_000)
  for (const token_id of ['tok_b', 'tok_a']) used(token_id)
  await advance(28_000)
  expect(written).toEqual([
    [
      { token_id: 'tok_a', last_used_at: start + 2 },
      { token_id: 'tok_b', last_used_at: start + 2 },
    ],
  ])
  used('tok_a')
  await advance(30_000)
  expect(written[1]).toEqual([{ token_id: 'tok_a', last_used_at: start + 30 }])
})

test('a token that is used while its use is written, or that could not be written, is written later', async () => {
  const written: Row[][] = []
  let isAway = true
  const { clock, used, close, advance } = setUp(async (rows) => {
    if (isAway) throw new Error('away')
    clock.advance(1_000)
    if (written.length === 0) used('tok_a')
    written.push([...rows])
  })
  used('tok_a')
  await advance(30_000)
  expect(written).toEqual([])
  isAway = false
  await advance(1_000)
  await close()
  expect(written.map((rows) => rows.map(({ token_id }) => token_id))).toEqual([['tok_a'], ['tok_a']])
  expect((written[1]?.[0]?.last_used_at ?? 0) - (written[0]?.[0]?.last_used_at ?? 0)).toBe(32)
})

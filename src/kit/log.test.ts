import { expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { createLog, type Log } from './log.ts'

function setUp(worker?: number) {
  const clock = manualClock(Date.UTC(2026, 0, 1, 0, 0, 59, 998))
  let text = ''
  const write = (lines: string) => {
    text += lines
  }
  const log: Log = createLog({ clock, level: 'info', pretty: false, write, worker })
  const lines = () => {
    log.flush()
    return text.split('\n').slice(0, -1)
  }
  return { clock, log, lines }
}

test('a line has the time of each millisecond, its level, its event and its fields', () => {
  const { clock, log, lines } = setUp()
  log.info('a "quoted" event', { number: 1, text: 'x', none: undefined })
  clock.advance(1)
  log.warn('a "quoted" event')
  clock.advance(1)
  log.info('other', { list: [{ a: 1 }] })
  log.debug('below the level')
  expect(lines()).toEqual([
    '{"time":"2026-01-01T00:00:59.998Z","level":"info","event":"a \\"quoted\\" event","number":1,"text":"x"}',
    '{"time":"2026-01-01T00:00:59.999Z","level":"warn","event":"a \\"quoted\\" event"}',
    '{"time":"2026-01-01T00:01:00.000Z","level":"info","event":"other","list":[{"a":1}]}',
  ])
})

test('a line may have the time of what it tells of, with fractions that are cut', () => {
  const { clock, log, lines } = setUp()
  log.info('request', {}, clock.now() - 3.5)
  log.info('request')
  expect(lines().map((line) => JSON.parse(line).time)).toEqual(['2026-01-01T00:00:59.994Z', '2026-01-01T00:00:59.998Z'])
})

test('the lines of two processes in one keep their numbers', () => {
  const [one, two] = [setUp(1), setUp(2)]
  for (const { log } of [one, two, one]) log.info('same')
  expect([...one.lines(), ...two.lines()].map((line) => JSON.parse(line).worker)).toEqual([1, 1, 2])
})

test('an error has its cause', () => {
  const { log, lines } = setUp()
  log.error('failed', { id: 'x' }, new Error('why'))
  expect(JSON.parse(lines()[0] ?? '')).toMatchObject({ level: 'error', event: 'failed', id: 'x' })
  expect(JSON.parse(lines()[0] ?? '').cause).toContain('why')
})

import { afterEach, describe, expect, test } from 'bun:test'
import { manualClock } from '../../../../test/kit/clock.ts'
import { type Crew, type CrewParts, createCrew, crewSize } from './crew.ts'
import { planRender } from './plan.ts'

/** A renderer that does what the text of its job says, and answers `pid` as its frame. */
const RENDERER = `
  const say = (word) => process.stdout.write(JSON.stringify(word) + '\\n')
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { text } = JSON.parse(line).plan
    if (text === 'crash') process.exit(3)
    if (text === 'fail') return say({ failed: 'no paint left' })
    process.stdout.write('a library says hello\\n{"and": "this"}\\n')
    say({ frame: process.pid })
    if (text !== 'silent') say({ done: 'built-in' })
  }).on('close', () => process.exit(0))
`

const crews: Crew[] = []
afterEach(() => {
  for (const crew of crews.splice(0)) crew.close()
})

function hire(parts: CrewParts = {}): Crew {
  const crew = createCrew({ size: 1, command: [process.execPath, '-e', RENDERER], ...parts })
  crews.push(crew)
  return crew
}

type Post = { started: Promise<void>; frame: Promise<number>; done: Promise<void> }

function post(crew: Crew, text: string, { signal = new AbortController().signal, quick = false } = {}): Post {
  const started = Promise.withResolvers<void>()
  const frame = Promise.withResolvers<number>()
  const plan = { ...planRender({ ...PARTS, text, quick: true }), quick }
  const job = { plan, path: '', onStart: () => started.resolve(), onFrame: frame.resolve }
  const done = crew.render(job, signal)
  done.catch(() => {}) // a test that cares awaits it
  return { started: started.promise, frame: frame.promise, done }
}

const PARTS = { seed: '', aspect_ratio: '1:1', size: '720p', duration: 4, audio: false } as const

describe('the crew', () => {
  test('is half of the cores, and at least one', () => {
    expect([1, 2, 3, 4, 16].map(crewSize)).toEqual([1, 1, 1, 2, 8])
  })

  test('gives one job after the other to the same process, and hears nothing but its own words', async () => {
    const crew = hire()
    const [one, two] = [post(crew, 'ok'), post(crew, 'ok')]
    await Promise.all([one.done, two.done])
    expect(await two.frame).toBe(await one.frame)
  })

  test('never has more at work than its size; the others wait their turn', async () => {
    const crew = hire({ size: 2 })
    const stop = new AbortController()
    const held = [post(crew, 'silent', { signal: stop.signal }), post(crew, 'silent')]
    const later = post(crew, 'ok')
    const [first, second] = await Promise.all(held.map(({ frame }) => frame))
    expect(first).not.toBe(second)
    expect(crew.waiting()).toBe(1)
    stop.abort(new Error('enough'))
    await later.done
    expect(crew.waiting()).toBe(0)
    await expect(held[0]?.done).rejects.toThrow('enough')
  })

  test('lets a quick one go before those that are large, but behind the quick ones', async () => {
    const crew = hire()
    const stop = new AbortController()
    const held = post(crew, 'silent', { signal: stop.signal })
    const order: string[] = []
    const large = post(crew, 'ok').started.then(() => order.push('large'))
    const quick = ['one', 'two'].map((name) =>
      post(crew, 'ok', { quick: true }).started.then(() => {
        order.push(name)
      }),
    )
    await held.frame
    stop.abort()
    await Promise.all([large, ...quick])
    expect(order).toEqual(['one', 'two', 'large'])
  })

  test('a process that ends in the middle fails its job, and the next gets a fresh one', async () => {
    const crew = hire()
    const [crash, next] = [post(crew, 'crash'), post(crew, 'ok')]
    await expect(crash.done).rejects.toThrow('the renderer ended (3)')
    await next.done
  })

  test('a program that is not there fails every job', async () => {
    const crew = hire({ command: ['/nowhere/renderer'] })
    const [one, two] = [post(crew, 'ok'), post(crew, 'ok')]
    await expect(one.done).rejects.toThrow()
    await expect(two.done).rejects.toThrow()
  })

  test('what the renderer says of its failure is the reason, and it goes on with the next', async () => {
    const crew = hire()
    const [bad, good] = [post(crew, 'fail'), post(crew, 'ok')]
    await expect(bad.done).rejects.toThrow('no paint left')
    await good.done
  })

  test('a process that is silent for a minute is ended', async () => {
    const clock = manualClock()
    const silent = post(hire({ clock }), 'silent')
    await silent.frame
    clock.advance(59_999)
    expect(clock.waiting()).toBe(1)
    clock.advance(1)
    await expect(silent.done).rejects.toThrow('fell silent')
  })

  test('a process that has nothing to do for a while is ended', async () => {
    const clock = manualClock()
    const crew = hire({ clock })
    const first = post(crew, 'ok')
    await first.done
    clock.advance(15_000)
    expect(clock.waiting()).toBe(0)
    const second = post(crew, 'ok')
    await second.done
    expect(await second.frame).not.toBe(await first.frame)
  })

  test('what is no longer wanted is dropped, waiting or under way', async () => {
    const crew = hire()
    const stop = new AbortController()
    const [running, waiting] = [post(crew, 'silent', stop), post(crew, 'ok', stop)]
    await running.frame
    stop.abort(new Error('not wanted'))
    await expect(running.done).rejects.toThrow('not wanted')
    await expect(waiting.done).rejects.toThrow('not wanted')
    await expect(post(crew, 'ok', stop).done).rejects.toThrow('not wanted')
    await post(crew, 'ok').done
  })

  test('a closed crew ends what it has and takes nothing more', async () => {
    const crew = hire()
    const [running, waiting] = [post(crew, 'silent'), post(crew, 'ok')]
    await running.frame
    crew.close()
    for (const { done } of [running, waiting, post(crew, 'ok')]) await expect(done).rejects.toThrow('closed')
  })

  test('the renderer is given no secret of the environment', async () => {
    process.env.GATEHOUSE_TEST_SECRET = 'abc'
    const tell = `process.stdout.write(JSON.stringify({ failed: Object.keys(process.env).join() }) + '\\n')`
    const script = `require('node:readline').createInterface({ input: process.stdin }).on('line', () => { ${tell} })`
    const names = post(hire({ command: [process.execPath, '-e', script] }), 'ok').done
    delete process.env.GATEHOUSE_TEST_SECRET
    const said = await names.catch((error: Error) => error.message)
    expect(said).toContain('PATH')
    expect(said).not.toContain('SECRET')
  })
})

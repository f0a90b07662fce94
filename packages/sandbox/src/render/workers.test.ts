import { afterEach, describe, expect, test } from 'bun:test'
import { manualClock } from '../../../../test/kit/clock.ts'
import { planRender } from './plan.ts'
import { createRenderWorkers, type RenderWorkers, type RenderWorkersParts, workerCount } from './workers.ts'

/** A renderer that does what the text of its job requests, and reports its `pid` as the frame. */
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

const crews: RenderWorkers[] = []
afterEach(() => {
  for (const renderWorkers of crews.splice(0)) renderWorkers.close()
})

function hire(parts: RenderWorkersParts = {}): RenderWorkers {
  const renderWorkers = createRenderWorkers({ size: 1, command: [process.execPath, '-e', RENDERER], ...parts })
  crews.push(renderWorkers)
  return renderWorkers
}

type PostOptions = { signal?: AbortSignal; quick?: boolean; owner?: string }
type Post = { started: Promise<void>; frame: Promise<number>; done: Promise<void> }

function post(
  renderWorkers: RenderWorkers,
  text: string,
  { signal = new AbortController().signal, quick = false, owner }: PostOptions = {},
): Post {
  const started = Promise.withResolvers<void>()
  const frame = Promise.withResolvers<number>()
  const plan = { ...planRender({ ...PARTS, text, quick: true }), quick }
  const job = { plan, path: '', owner, onStart: () => started.resolve(), onFrame: frame.resolve }
  const done = renderWorkers.render(job, signal)
  done.catch(() => {}) // a test that cares awaits it
  return { started: started.promise, frame: frame.promise, done }
}

const PARTS = { seed: '', aspect_ratio: '1:1', size: '720p', duration: 4, audio: false } as const

describe('render workers', () => {
  test('are half as many as the cores, and at least one', () => {
    expect([1, 2, 3, 4, 16].map(workerCount)).toEqual([1, 1, 1, 2, 8])
  })

  test('give one job after the other to the same process, and ignore lines that are no messages', async () => {
    const renderWorkers = hire()
    const [one, two] = [post(renderWorkers, 'ok'), post(renderWorkers, 'ok')]
    await Promise.all([one.done, two.done])
    expect(await two.frame).toBe(await one.frame)
  })

  test('never run more processes than their size; other jobs wait', async () => {
    const renderWorkers = hire({ size: 2 })
    const stop = new AbortController()
    const held = [post(renderWorkers, 'silent', { signal: stop.signal }), post(renderWorkers, 'silent')]
    const later = post(renderWorkers, 'ok')
    const [first, second] = await Promise.all(held.map(({ frame }) => frame))
    expect(first).not.toBe(second)
    expect(renderWorkers.waiting()).toBe(1)
    stop.abort(new Error('enough'))
    await later.done
    expect(renderWorkers.waiting()).toBe(0)
    await expect(held[0]?.done).rejects.toThrow('enough')
  })

  test('take the jobs of different owners in turn, however many one of them has waiting', async () => {
    const renderWorkers = hire()
    const stop = new AbortController()
    const held = post(renderWorkers, 'silent', { signal: stop.signal, owner: 'a' })
    await held.started
    const order: string[] = []
    const jobs = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((name) =>
      post(renderWorkers, 'ok', { owner: name.slice(0, 1) }),
    )
    for (const [at, name] of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].entries()) {
      void jobs[at]?.started.then(() => order.push(name))
    }
    expect([renderWorkers.waiting(), renderWorkers.waiting('a'), renderWorkers.waiting('c')]).toEqual([6, 3, 1])
    stop.abort(new Error('enough'))
    await Promise.all(jobs.map(({ done }) => done))
    expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
  })

  test('start a quick job before large ones, but after other quick ones', async () => {
    const renderWorkers = hire()
    const stop = new AbortController()
    const held = post(renderWorkers, 'silent', { signal: stop.signal })
    const order: string[] = []
    const large = post(renderWorkers, 'ok').started.then(() => order.push('large'))
    const quick = ['one', 'two'].map((name) =>
      post(renderWorkers, 'ok', { quick: true }).started.then(() => {
        order.push(name)
      }),
    )
    await held.frame
    stop.abort()
    await Promise.all([large, ...quick])
    expect(order).toEqual(['one', 'two', 'large'])
  })

  test('fail the job of a process that ends, and start a new process for the next job', async () => {
    const renderWorkers = hire()
    const [crash, next] = [post(renderWorkers, 'crash'), post(renderWorkers, 'ok')]
    await expect(crash.done).rejects.toThrow('the renderer ended (3)')
    await next.done
  })

  test('fail every job if the program does not exist', async () => {
    const renderWorkers = hire({ command: ['/nowhere/renderer'] })
    const [one, two] = [post(renderWorkers, 'ok'), post(renderWorkers, 'ok')]
    await expect(one.done).rejects.toThrow()
    await expect(two.done).rejects.toThrow()
  })

  test('reject with the message of the renderer, and go on with the next job', async () => {
    const renderWorkers = hire()
    const [bad, good] = [post(renderWorkers, 'fail'), post(renderWorkers, 'ok')]
    await expect(bad.done).rejects.toThrow('no paint left')
    await good.done
  })

  test('stop a process that sends nothing for a minute', async () => {
    const clock = manualClock()
    const silent = post(hire({ clock }), 'silent')
    await silent.frame
    clock.advance(59_999)
    expect(clock.waiting()).toBe(1)
    clock.advance(1)
    await expect(silent.done).rejects.toThrow('stopped responding')
  })

  test('stop a process that is idle for a while', async () => {
    const clock = manualClock()
    const renderWorkers = hire({ clock })
    const first = post(renderWorkers, 'ok')
    await first.done
    clock.advance(15_000)
    expect(clock.waiting()).toBe(0)
    const second = post(renderWorkers, 'ok')
    await second.done
    expect(await second.frame).not.toBe(await first.frame)
  })

  test('cancel an aborted job, waiting or running', async () => {
    const renderWorkers = hire()
    const stop = new AbortController()
    const [running, waiting] = [post(renderWorkers, 'silent', stop), post(renderWorkers, 'ok', stop)]
    await running.frame
    stop.abort(new Error('aborted'))
    await expect(running.done).rejects.toThrow('aborted')
    await expect(waiting.done).rejects.toThrow('aborted')
    await expect(post(renderWorkers, 'ok', stop).done).rejects.toThrow('aborted')
    await post(renderWorkers, 'ok').done
  })

  test('stop all jobs and reject new ones after close()', async () => {
    const renderWorkers = hire()
    const [running, waiting] = [post(renderWorkers, 'silent'), post(renderWorkers, 'ok')]
    await running.frame
    renderWorkers.close()
    for (const { done } of [running, waiting, post(renderWorkers, 'ok')]) await expect(done).rejects.toThrow('closed')
  })

  test('pass no secret of the environment to the renderer', async () => {
    process.env.GATEHOUSE_TEST_SECRET = 'abc'
    const tell = `process.stdout.write(JSON.stringify({ failed: Object.keys(process.env).join() }) + '\\n')`
    const script = `require('node:readline').createInterface({ input: process.stdin }).on('line', () => { ${tell} })`
    const names = post(hire({ command: [process.execPath, '-e', script] }), 'ok').done
    delete process.env.GATEHOUSE_TEST_SECRET
    const failure = await names.catch((error: Error) => error.message)
    expect(failure).toContain('PATH')
    expect(failure).not.toContain('SECRET')
  })
})

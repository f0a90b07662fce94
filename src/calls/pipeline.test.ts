import { describe, expect, it, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { testCall, useOf } from '../../test/kit/pipeline.ts'
import { createLog } from '../kit/log.ts'
import { catalogueModel, createCatalogue } from '../models/catalogue.ts'
import type { Provider } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import type { LedgerEntry } from '../store/ledger/ledger-entry.ts'
import { type CallSubscriber, type Gate, type Hold, type Meter, whenEnded } from './call.ts'
import type { Family, ResponseStream, StreamFamily } from './family.ts'
import { createPipeline } from './pipeline.ts'
import { createRouter } from './routing/router.ts'

type Input = { model: string; refuse?: true }
type Execute<Answer> = NonNullable<Family<Input, Input, Answer, Meter<number>>['execute']>

const caller = { token_id: 'tok_a', mayUseModel: () => true, mayUseFamily: () => true }
const broken = (code: GatewayError['code'], accepted?: 'no') =>
  new GatewayError(code, 'Broken.', accepted ? { accepted } : {})

function gateway({
  usage = async () => 7,
  counted = undefined as (() => boolean) | undefined,
  deliversUncounted = (): boolean => false,
  policy = 'until_answered' as Family<never, never, never, undefined>['policy'],
  gates = [{ name: 'none', admit: () => undefined }] as Gate[],
} = {}) {
  const clock = manualClock()
  const catalogue = createCatalogue({ clock })
  const provider = (id: string): Provider => ({ id, kind: 'test', rerank: {} as Provider['rerank'] & object })
  const targets = ['one', 'two'].map((id, priority) => ({ provider: provider(id), model: 'm', priority }))
  const row = catalogueModel({
    id: 'a/b',
    config: { families: ['rerank'] },
    targets,
    created: 0,
    when_retired: 'refuse',
  })
  catalogue.replace([row])
  const recorded: ReturnType<typeof useOf>[] = []
  const entries: LedgerEntry[] = []
  const events: string[] = []
  const nextSteps: (string | undefined)[] = []
  let logged = ''
  const log = createLog({
    clock,
    level: 'debug',
    pretty: false,
    write: (text) => {
      logged += text
    },
  })
  const subscriber: CallSubscriber = {
    started: ({ family }) => void events.push(`started ${family}`),
    attemptStarted: (
      _,
      {
        target: {
          provider: { id },
        },
      },
    ) => void events.push(`attempt ${id}`),
    attemptFailed: (_, { target, error }) => void events.push(`failed ${target.provider.id} ${error}`),
    firstByte: () => void events.push('first byte'),
    finished({ error, units, attempts }) {
      events.push(`finished ${error ?? 'ok'} ${units?.input_tokens}`)
      nextSteps.push(...attempts.map(({ next }) => next))
    },
  }
  const resolved: (string | undefined)[] = []
  const router = createRouter({ clock, log })
  const pipeline = createPipeline({
    catalogue: {
      require(name, family, caller) {
        resolved.push(name)
        return catalogue.require(name, family, caller)
      },
    },
    recordUsage(added) {
      recorded.push(...added.map(useOf))
      entries.push(...added)
      return undefined
    },
    router,
    subscribers: [
      {
        started: () => {
          throw new Error('a broken subscriber')
        },
      },
      subscriber,
    ],
    gates,
    clock,
    log,
  })
  const shared = {
    endpoint: () => 'rerank' as const,
    modelOf: ({ model }: Input) => model,
    fit(_: unknown, input: Input) {
      if (input.refuse) throw new GatewayError('invalid_value', 'It does not fit.')
      return input
    },
    meter: (): Meter<number> => ({
      usage,
      units: (tokens) => ({ input_tokens: tokens, output_tokens: 1 }),
      ...(counted ? { hasCounted: counted } : {}),
      hasDelivered: deliversUncounted,
    }),
    estimate: () => ({ expected: { input_tokens: 10, output_tokens: 5 }, most: MOST }),
    policy,
  }
  const whole = <Answer>(execute: Execute<Answer>) => ({ ...shared, execute })
  const stream = (execute: Execute<ResponseStream<number>>): StreamFamily<Input, Input, Meter<number>> => ({
    ...shared,
    execute,
    encodeError: ({ code }) => `<${code}>`,
  })
  const lines = () => {
    log.flush()
    return logged
  }
  return {
    pipeline,
    router,
    targets,
    resolved,
    recorded,
    entries,
    events,
    nextSteps,
    whole,
    stream,
    clock,
    logged: lines,
  }
}

const input = { model: 'a/b' }
const use = (more: object = {}) => ({
  token_id: 'tok_a',
  model: 'a/b',
  input_tokens: 7,
  output_tokens: 1,
  error: false,
  estimated: false,
  ...more,
})
const NOTHING = { input_tokens: 0, output_tokens: 0 }
const MOST = { input_tokens: 90, output_tokens: 30 }

describe('a call with one answer', () => {
  test('passes every stage in order and is recorded once', async () => {
    const { pipeline, whole, targets, recorded, events } = gateway()
    const family = whole((_, { attempt }) => attempt(targets, async ({ provider }) => `from ${provider.id}`))
    const { answer, usage, model } = await pipeline.run(family, testCall(caller), input)
    expect({ answer, usage, model: model.id }).toEqual({ answer: 'from one', usage: 7, model: 'a/b' })
    expect(recorded).toEqual([use()])
    expect(events).toEqual(['started rerank', 'attempt one', 'finished ok 7'])
  })

  test('is rejected before anything is sent when its model is unknown or its request does not fit', async () => {
    const { pipeline, whole, recorded, events } = gateway()
    const family = whole(() => Promise.reject(new Error('must not be executed')))
    await expect(pipeline.run(family, testCall(caller), { model: 'a/c' })).rejects.toMatchObject({
      code: 'model_not_found',
    })
    await expect(pipeline.run(family, testCall(caller), { ...input, refuse: true })).rejects.toMatchObject({
      code: 'invalid_value',
    })
    expect(recorded).toEqual([])
    expect(events).toEqual([
      'started rerank',
      'finished model_not_found undefined',
      'started rerank',
      'finished invalid_value undefined',
    ])
  })

  test('tries the next target when the first one fails, and rejects with the last failure', async () => {
    const { pipeline, whole, targets, recorded, events } = gateway()
    const failing = whole((_, { attempt }) => attempt(targets, () => Promise.reject(broken('upstream_unreachable'))))
    await expect(pipeline.run(failing, testCall(caller), input)).rejects.toMatchObject({ code: 'upstream_unreachable' })
    expect(events).toEqual([
      'started rerank',
      'attempt one',
      'failed one upstream_unreachable',
      'attempt two',
      'failed two upstream_unreachable',
      'finished upstream_unreachable 0',
    ])
    expect(recorded).toEqual([use({ ...NOTHING, error: true })])
  })

  test('with the policy until_accepted tries the next target only after a certain rejection', async () => {
    const { pipeline, whole, targets, events } = gateway({ policy: 'until_accepted' })
    const attempted = () => events.splice(0).filter((event) => event.startsWith('attempt'))
    const run = (error: GatewayError) =>
      pipeline
        .run(
          whole((_, { attempt }) => attempt(targets, () => Promise.reject(error))),
          testCall(caller),
          input,
        )
        .catch(() => {})
    await run(broken('upstream_cut'))
    expect(attempted()).toEqual(['attempt one'])
    await run(broken('upstream_unreachable', 'no'))
    expect(attempted()).toEqual(['attempt one', 'attempt two'])
  })

  test('charges nothing where the stream of the provider was cut before its first text, at the most that it can cost', async () => {
    const { pipeline, whole, targets, entries } = gateway()
    await pipeline
      .run(
        whole((_, { attempt }) => attempt(targets.slice(0, 1), () => Promise.reject(broken('upstream_cut')))),
        testCall(caller),
        input,
      )
      .catch(() => {})
    expect(entries).toMatchObject([
      { kind: 'call', requests: 1, errors: 1, units: { output_tokens: 0 } },
      { kind: 'lost_attempt', requests: 0, estimated: 1, amount: 0 },
    ])
  })

  test.each(['upstream_timeout', 'shutting_down', 'client_closed_request'] as const)(
    'counts the most that it can have used after %s, because the provider may have charged',
    async (code) => {
      const { pipeline, whole, targets, recorded } = gateway()
      await pipeline
        .run(
          whole((_, { attempt }) => attempt(targets.slice(0, 1), () => Promise.reject(broken(code)))),
          testCall(caller),
          input,
        )
        .catch(() => {})
      expect(recorded).toEqual([use({ ...MOST, error: true, estimated: true })])
    },
  )

  test('counts nothing when it fails before anything is sent', async () => {
    const { pipeline, whole, targets, recorded } = gateway()
    for (const execute of [
      whole(() => Promise.reject(broken('upstream_timeout'))),
      whole((_, { attempt }) => attempt(targets, () => Promise.reject(broken('upstream_timeout', 'no')))),
    ]) {
      await pipeline.run(execute, testCall(caller), input).catch(() => {})
      expect(recorded.splice(0)).toEqual([use({ ...NOTHING, error: true })])
    }
  })

  test('counts the most that it can have used, and records no error, when the client has left', async () => {
    const { pipeline, whole, targets, recorded } = gateway()
    const left = broken('client_closed_request')
    const call = { ...testCall(caller), signal: AbortSignal.abort(left) }
    await pipeline
      .run(
        whole((_, { attempt }) => attempt(targets, () => Promise.reject(left))),
        call,
        input,
      )
      .catch(() => {})
    expect(recorded).toEqual([use({ ...MOST, estimated: true })])
  })

  test('counts what the provider has reported when its answer was read to its end after the client had left', async () => {
    const { pipeline, whole, targets, recorded, events } = gateway()
    const left = broken('client_closed_request')
    const call = { ...testCall(caller), signal: AbortSignal.abort(left) }
    const family = whole((_, { attempt }) => attempt(targets, async () => 'answer'))
    await expect(pipeline.run(family, call, input)).rejects.toMatchObject({ code: 'client_closed_request' })
    expect(recorded).toEqual([use()])
    expect(events).toEqual(['started rerank', 'attempt one', 'finished client_closed_request 7'])
  })

  test('records each attempt that may have been charged, at the most that it can have used, and charges the caller once', async () => {
    const { pipeline, whole, targets, recorded } = gateway()
    const family = whole((_, { attempt }) =>
      attempt(targets, async ({ provider }) => {
        if (provider.id === 'one') throw broken('upstream_timeout')
        return 'answer'
      }),
    )
    await pipeline.run(family, testCall(caller), input)
    expect(recorded).toEqual([use(), use({ ...MOST, estimated: true })])
  })

  test.each(['upstream_unreachable', 'upstream_auth', 'rate_limit_exceeded', 'server_is_overloaded'] as const)(
    'records no attempt that the provider has refused with %s',
    async (code) => {
      const { pipeline, whole, targets, recorded } = gateway()
      const family = whole((_, { attempt }) =>
        attempt(targets, async ({ provider }) => {
          if (provider.id === 'one') throw broken(code)
          return 'answer'
        }),
      )
      await pipeline.run(family, testCall(caller), input)
      expect(recorded).toEqual([use()])
    },
  )

  test('charges nothing for an answer that cannot be read, whose provider may have charged', async () => {
    const { pipeline, whole, targets, recorded } = gateway()
    const family = whole((_, { attempt }) =>
      attempt(targets.slice(0, 1), () => Promise.reject(broken('bad_upstream_response'))),
    )
    await pipeline.run(family, testCall(caller), input).catch(() => {})
    expect(recorded).toEqual([use({ ...NOTHING, error: true }), use({ ...MOST, estimated: true })])
  })

  test('charges an order at the most after every error that does not prove that it was not accepted', async () => {
    const { pipeline, whole, targets, recorded } = gateway({ policy: 'until_accepted' })
    for (const code of ['bad_upstream_response', 'upstream_unreachable', 'server_is_overloaded'] as const) {
      const order = (error: GatewayError) =>
        pipeline
          .run(
            whole((_, { attempt }) => attempt(targets.slice(0, 1), () => Promise.reject(error))),
            testCall(caller),
            input,
          )
          .catch(() => {})
      await order(broken(code))
      expect(recorded.splice(0)).toEqual([use({ ...MOST, error: true, estimated: true })])
      await order(broken(code, 'no'))
      expect(recorded.splice(0)).toEqual([use({ ...NOTHING, error: true })])
    }
  })
})

describe('the last attempt of a call that failed', () => {
  it('says why no other target followed, also where its answer could not be used', async () => {
    const { pipeline, whole, targets, nextSteps } = gateway()
    const unusable = whole(async (_, { attempt }) => {
      await attempt(targets.slice(0, 1), async () => 'an answer')
      throw broken('bad_upstream_response', 'no')
    })
    await pipeline.run(unusable, testCall(caller), input).catch(() => {})
    const refused = whole((_, { attempt }) =>
      attempt(targets, () => Promise.reject(new GatewayError('invalid_value', 'No.'))),
    )
    await pipeline.run(refused, testCall(caller), input).catch(() => {})
    expect(nextSteps).toEqual(['none_left', 'not_retried'])
  })
})

describe('a call with a streamed response', () => {
  async function* parts(...texts: (string | GatewayError)[]) {
    for (const text of texts) {
      if (text instanceof GatewayError) throw text
      yield text
    }
  }
  const responseOf = (source: AsyncIterable<string>, includesUsage = false): ResponseStream<number> => ({
    parts: source,
    includesUsage,
    end: (usage) => `end ${usage}`,
  })
  /** Sends a call whose provider responds with this stream, or rejects. */
  function send(
    { pipeline, stream, targets }: ReturnType<typeof gateway>,
    response: ResponseStream<number> | GatewayError,
    call = testCall(caller),
  ) {
    const execute: Execute<ResponseStream<number>> = (_, { attempt }) =>
      attempt(targets.slice(0, 1), async () => {
        if (response instanceof GatewayError) throw response
        return response
      })
    return pipeline.prepareStream(stream(execute), call, input).send()
  }
  const textOf = async (source: AsyncIterable<string | Uint8Array>) => (await Array.fromAsync(source)).join('|')

  test('is settled once, when it ends', async () => {
    const setup = gateway()
    const { parts: sent, started } = send(setup, responseOf(parts('a', 'b'), true))
    await started
    expect(setup.recorded).toEqual([])
    expect(await textOf(sent)).toBe('a|b|end 7')
    expect(setup.recorded).toEqual([use()])
    expect(setup.events).toEqual(['started rerank', 'attempt one', 'first byte', 'finished ok 7'])
  })

  test('gives a first part that has arrived at once, until its reader stops', async () => {
    const ahead = () => Object.assign(parts('b'), { takeFirst: () => 'a' })
    const { parts: sent, started } = send(gateway(), responseOf(ahead()))
    expect(sent.takeFirst?.()).toBeUndefined()
    await started
    expect(sent.takeFirst?.()).toBe('a')
    expect(await textOf(sent)).toBe('b|end undefined')
    const left = send(gateway(), responseOf(ahead()))
    await left.started
    await left.parts[Symbol.asyncIterator]().return?.()
    expect(left.parts.takeFirst?.()).toBeUndefined()
  })

  test('closes a source that arrives after its reader has stopped', async () => {
    const setup = gateway()
    const late = Promise.withResolvers<ResponseStream<number>>()
    const sent = setup.pipeline
      .prepareStream(
        setup.stream(() => late.promise),
        testCall(caller),
        input,
      )
      .send()
    await sent.parts[Symbol.asyncIterator]().return?.()
    let closed = 0
    const source = {
      next: () => Promise.reject(new Error('read')),
      return: async () => ({ done: true as const, value: closed++ }),
    }
    late.resolve(responseOf({ [Symbol.asyncIterator]: () => source }))
    await sent.started
    expect(closed).toBe(1)
  })

  test('does not wait for a usage that the client does not get', async () => {
    const { parts: sent } = send(gateway({ usage: () => new Promise(() => {}) }), responseOf(parts('a')))
    const iterator = sent[Symbol.asyncIterator]()
    expect([(await iterator.next()).value, (await iterator.next()).value]).toEqual(['a', 'end undefined'])
  })

  test('ends before a usage is measured that the client does not get', async () => {
    const measured = Promise.withResolvers<number>()
    for (const source of [parts('a'), parts('a', broken('upstream_cut'))]) {
      const setup = gateway({ usage: () => measured.promise })
      const text = await textOf(send(setup, responseOf(source)).parts)
      expect(text).toMatch(/^a\|(end undefined|<upstream_cut>)$/)
      expect(setup.recorded).toEqual([])
    }
  })

  test('is recorded at the most, and as estimated, when its usage cannot be measured', async () => {
    const setup = gateway({ usage: () => Promise.reject(new Error('the tokenizer failed')) })
    expect(await textOf(send(setup, responseOf(parts('a', broken('upstream_cut')))).parts)).toBe('a|<upstream_cut>')
    await setup.pipeline.close({ deadline_ms: 1_000 })
    expect(setup.recorded).toEqual([use({ ...MOST, error: true, estimated: true })])
    expect(setup.logged()).toContain('usage could not be measured')
  })

  test('where nothing was delivered, costs the most that it can have used, which is charged unless it broke', async () => {
    const counted = () => false
    for (const end of ['left', 'broken', 'never read'] as const) {
      const setup = gateway({ counted })
      const sent = send(setup, responseOf(parts('a', broken('upstream_cut'))))
      if (end === 'broken') await textOf(sent.parts)
      if (end === 'left') for await (const _ of sent.parts) break
      if (end === 'never read') await sent.abandon()
      await setup.pipeline.close({ deadline_ms: 1_000 })
      const most = use({ ...MOST, error: false, estimated: true })
      const isCharged = end !== 'broken'
      expect(setup.recorded).toEqual(isCharged ? [most] : [use({ ...NOTHING, error: true }), most])
      expect(setup.entries.map(({ kind }) => kind)).toEqual(isCharged ? ['call'] : ['call', 'lost_attempt'])
    }
  })

  test('is charged the most that it can have used, where it broke after the client got what is not counted', async () => {
    const setup = gateway({ counted: () => false, deliversUncounted: () => true })
    await textOf(send(setup, responseOf(parts('a', broken('upstream_cut')))).parts)
    expect(setup.recorded).toEqual([use({ ...MOST, error: true, estimated: true })])
  })

  test('ends with the encoded error and is settled when the stream breaks', async () => {
    const setup = gateway()
    const { parts: sent, record } = send(setup, responseOf(parts('a', broken('upstream_cut'))))
    expect(await textOf(sent)).toBe('a|<upstream_cut>')
    expect(record.error).toBe('upstream_cut')
    expect(setup.recorded).toEqual([use({ error: true })])
  })

  test('rejects `started` and is settled without being read when the provider returns an error', async () => {
    const setup = gateway()
    const { started } = send(setup, broken('upstream_unreachable'))
    await expect(started).rejects.toMatchObject({ code: 'upstream_unreachable' })
    expect(setup.recorded).toEqual([use({ ...NOTHING, error: true })])
  })

  test('is settled when `execute` throws before it returns a promise', async () => {
    const { pipeline, stream, recorded } = gateway()
    const family = stream(() => {
      throw broken('internal_error')
    })
    const { started } = pipeline.prepareStream(family, testCall(caller), input).send()
    await expect(started).rejects.toMatchObject({ code: 'internal_error' })
    expect(recorded).toEqual([use({ ...NOTHING, error: true })])
  })

  test('is settled when its reader stops, and by `abandon` when nobody reads it', async () => {
    const setup = gateway()
    for await (const _ of send(setup, responseOf(parts('a', 'b'))).parts) break
    const unread = send(setup, responseOf(parts('a')))
    await unread.started
    await unread.abandon()
    await setup.pipeline.close({ deadline_ms: 1_000 })
    expect(setup.recorded).toEqual([use(), use()])
  })

  test('leaves no open call at a target that answers after the call has ended', async () => {
    const setup = gateway()
    const late = Promise.withResolvers<ResponseStream<number>>()
    const execute: Execute<ResponseStream<number>> = (_, { attempt }) =>
      attempt(setup.targets.slice(0, 1), () => late.promise)
    const sent = setup.pipeline.prepareStream(setup.stream(execute), testCall(caller), input).send()
    await sent.abandon()
    late.resolve(responseOf(parts('a')))
    await sent.started
    expect(Array.from(setup.router.states(), ({ open }) => open)).toEqual([0])
  })

  test('is not complete when its source ended because it was aborted', async () => {
    const control = new AbortController()
    async function* aborted() {
      yield 'a'
      control.abort(broken('shutting_down'))
    }
    const call = { ...testCall(caller), signal: control.signal }
    expect(await textOf(send(gateway(), responseOf(aborted()), call).parts)).toBe('a|<shutting_down>')
  })
})

describe('authorize', () => {
  const family = 'rerank' as const

  test('resolves the model of the call that follows', async () => {
    const { pipeline, whole, resolved } = gateway()
    const call = testCall(caller)
    pipeline.authorize(call, { family, model: input.model })
    await pipeline.run(
      whole(async () => 'answer'),
      call,
      input,
    )
    expect(resolved).toEqual(['a/b'])
  })

  test('does not stand for another model than the one that was authorized', async () => {
    const { pipeline, whole, resolved } = gateway()
    const call = testCall(caller)
    pipeline.authorize(call, { family, model: input.model })
    const other = pipeline.run(
      whole(async () => 'answer'),
      call,
      { model: 'a/c' },
    )
    await expect(other).rejects.toMatchObject({ code: 'model_not_found' })
    expect(resolved).toEqual(['a/b', 'a/c'])
  })

  test('throws and finishes the call when the caller may not use the model', () => {
    const { pipeline, events } = gateway()
    const call = testCall({ ...caller, mayUseModel: () => false })
    expect(() => pipeline.authorize(call, { family, model: input.model })).toThrow('may not use the model')
    expect(events).toEqual(['started rerank', 'finished model_not_allowed undefined'])
  })
})

describe('close', () => {
  test('waits for every call, at most until the deadline', async () => {
    const measured = Promise.withResolvers<number>()
    const { pipeline, whole, recorded, clock, logged } = gateway({ usage: () => measured.promise })
    const running = pipeline.run(
      whole(async () => 'answer'),
      testCall(caller),
      input,
    )
    const late = pipeline.close({ deadline_ms: 1_000 })
    clock.advance(1_000)
    await late
    expect(logged()).toContain('calls were not settled before the deadline')
    const closed = pipeline.close({ deadline_ms: 1_000 })
    measured.resolve(3)
    await Promise.all([closed, running])
    expect(recorded).toEqual([use({ input_tokens: 3 })])
  })

  test('does not wait for a call that was prepared and never sent', async () => {
    const { pipeline, whole, stream, recorded } = gateway()
    const execute = () => Promise.reject(new Error('must not be executed'))
    pipeline.prepare(whole(execute), testCall(caller), input)
    pipeline.prepareStream(stream(execute), testCall(caller), input)
    await pipeline.close({ deadline_ms: 1_000 }) // the test's clock stands still: a deadline would never come
    expect(recorded).toEqual([])
  })
})

test('what is to be done at the end of a call is done once, after the subscribers, although some of it fails', async () => {
  const { pipeline, whole, targets, events, logged } = gateway()
  const family = whole((_, { attempt }) => attempt(targets, async () => 1))
  const call = testCall(caller)
  whenEnded(call, () => {
    throw new Error('broken')
  })
  whenEnded(call, ({ model }) => void events.push(`ended ${model}`))
  await pipeline.run(family, call, input)
  expect(events.slice(-2)).toEqual(['finished ok 7', 'ended a/b'])
  expect(logged()).toContain('what was to be done at the end of a call failed')
  const refused = testCall(caller)
  whenEnded(refused, ({ error }) => void events.push(`ended ${error}`))
  await pipeline.run(family, refused, { model: 'a/b', refuse: true }).catch(() => {})
  expect(events.at(-1)).toBe('ended invalid_value')
})

describe('limits and budgets', () => {
  /** A gate that notes what happens to it. */
  function gateNamed(name: string, notes: string[], admit: (hold: Hold) => ReturnType<Gate['admit']> = (hold) => hold) {
    const hold: Hold = {
      moveTo: ({ model }) => void notes.push(`${name} moves to ${model.id}`),
      settle: ({ input_tokens }) => void notes.push(`${name} settles ${input_tokens}`),
    }
    return {
      name,
      admit(request: Parameters<Gate['admit']>[0]) {
        notes.push(`${name} admits ${request.model.id} of ${request.call.caller.token_id}`)
        return admit(hold)
      },
    }
  }
  const refuse = () => {
    throw new GatewayError('rate_limit_exceeded', 'Too many requests.')
  }

  test('admit a call before it is sent and are settled once with what it used', async () => {
    const notes: string[] = []
    const { pipeline, whole, targets } = gateway({ gates: [gateNamed('one', notes), gateNamed('two', notes)] })
    const family = whole((_, { attempt }) =>
      attempt(targets, async () => {
        notes.push('sent')
        return 1
      }),
    )
    await pipeline.run(family, testCall(caller), input)
    expect(notes).toEqual([
      'one admits a/b of tok_a',
      'two admits a/b of tok_a',
      'sent',
      'one settles 7',
      'two settles 7',
    ])
  })

  test('that refuse a call undo what earlier ones hold, and no usage is recorded', async () => {
    for (const second of [refuse, async () => refuse()]) {
      const notes: string[] = []
      const { pipeline, whole, stream, recorded, events } = gateway({
        gates: [gateNamed('one', notes), gateNamed('two', notes, second)],
      })
      const never = () => {
        throw new Error('sent')
      }
      await expect(pipeline.run(whole(never), testCall(caller), input)).rejects.toMatchObject({
        code: 'rate_limit_exceeded',
      })
      const sent = pipeline.prepareStream(stream(never), testCall(caller), input).send()
      await expect(sent.started).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
      expect(notes.filter((note) => note === 'one settles 0')).toHaveLength(2)
      expect(notes.filter((note) => note.startsWith('two settles'))).toEqual([])
      expect(recorded).toEqual([])
      expect(events.filter((event) => event.startsWith('finished rate_limit_exceeded'))).toHaveLength(2)
    }
  })

  test('may make a call wait', async () => {
    const notes: string[] = []
    const free = Promise.withResolvers<void>()
    const { pipeline, whole, targets, recorded } = gateway({
      gates: [gateNamed('one', notes, async (hold) => free.promise.then(() => hold)), gateNamed('two', notes)],
    })
    const family = whole((_, { attempt }) => attempt(targets, async () => 1))
    const running = pipeline.run(family, testCall(caller), input)
    expect(notes).toEqual(['one admits a/b of tok_a'])
    free.resolve()
    await running
    expect(notes.slice(1)).toEqual(['two admits a/b of tok_a', 'one settles 7', 'two settles 7'])
    expect(recorded).toHaveLength(1)
  })

  test('of a stream are settled when the client leaves', async () => {
    const notes: string[] = []
    const { pipeline, stream, targets } = gateway({ gates: [gateNamed('one', notes)] })
    const parts = (async function* () {
      yield 'a'
      yield 'b'
    })()
    const sent = pipeline
      .prepareStream(
        stream((_, { attempt }) => attempt(targets, async () => ({ parts, includesUsage: false, end: () => '' }))),
        testCall(caller),
        input,
      )
      .send()
    for await (const _ of sent.parts) break
    await sent.abandon()
    expect(notes).toEqual(['one admits a/b of tok_a', 'one settles 7'])
  })

  test('hold nothing of a stream whose client left while it waited, and no provider is asked', async () => {
    const notes: string[] = []
    const free = Promise.withResolvers<void>()
    const { pipeline, stream, targets, recorded, events } = gateway({
      gates: [
        gateNamed('one', notes),
        gateNamed('two', notes, async (hold) => free.promise.then(() => hold)),
        gateNamed('three', notes),
      ],
    })
    const family = stream((_, { attempt }) =>
      attempt(targets, async () => {
        throw new Error('the provider is asked')
      }),
    )
    const sent = pipeline.prepareStream(family, testCall(caller), input).send()
    const reading = Array.fromAsync(sent.parts)
    await sent.abandon()
    free.resolve()
    expect(await reading).toEqual(['<client_closed_request>'])
    expect(notes).toEqual(['one admits a/b of tok_a', 'two admits a/b of tok_a', 'one settles 0', 'two settles 0'])
    expect(events).toEqual(['started rerank', 'finished client_closed_request undefined'])
    expect(recorded).toEqual([])
  })
})

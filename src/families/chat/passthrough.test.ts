/** How an answer that passes as bytes ends, and what becomes of its connection. */
import { expect, test } from 'bun:test'
import { testCall } from '../../../test/kit/pipeline.ts'
import type { PassthroughStep, ProtocolPassthrough } from '../../protocols/shared/protocol.ts'
import type { PassthroughProvider, PassthroughResponse } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import { usageFrom } from '../../spec/usage.ts'
import type { ChatMeter } from './meter.ts'
import { PassthroughRequest, passThroughStream } from './passthrough.ts'
import type { ResponseContext } from './translate.ts'

const meter: ChatMeter = {
  count() {},
  countRaw() {},
  countWhole() {},
  usage: async () => usageFrom({ input: 0, output: 0 }),
  units: (usage) => usage,
  hasCounted: () => true,
  hasDelivered: () => false,
}

/** What the client gets of a vendor that says a word, and then fails or ends; and what became of the connection. */
async function passed(last: GatewayError | undefined, isFinished: boolean) {
  const said = [Buffer.from('words')]
  const ends: string[] = []
  const answer: PassthroughResponse = {
    headers: new Headers(),
    async read() {
      const bytes = said.shift()
      if (!bytes && last) throw last
      return bytes
    },
    text: async () => '',
    release: () => void ends.push('released'),
    drop: () => void ends.push('dropped'),
  }
  const step = (events: string): PassthroughStep => ({
    events: events === '' ? [] : [events],
    received: [],
    isDone: false,
  })
  const passthrough: ProtocolPassthrough = {
    headers: [],
    body: (body) => body,
    whole: () => {
      throw new Error('not asked for')
    },
    stream: () => ({
      push: (bytes) => step(Buffer.from(bytes).toString('latin1')),
      close: () => step('+close'),
      isFinished: () => isFinished,
      includesUsage: false,
      end: () => '',
    }),
  }
  const passing = {
    target: { provider: { id: 'v', kind: 'messages-compat' }, model: 'm' },
    passthrough: {
      dialect: 'messages-compat',
      send: async () => answer,
      faultsOf: () => ({}),
    } as unknown as PassthroughProvider,
    passthroughRequest: new PassthroughRequest(passthrough, 'messages-compat', {}, { header: () => null }, undefined),
    tried: {
      signal: new AbortController().signal,
      call: testCall({ token_id: 't', mayUseModel: () => true, mayUseFamily: () => true }),
    },
  }
  const stream = await passThroughStream(passing, {
    request: { model: 'v/m', messages: [] },
    responseContext: { writer: {} } as ResponseContext,
    meter,
  })
  let text = ''
  let code: unknown
  try {
    for await (const piece of stream.parts) text += Buffer.from(piece).toString('latin1')
  } catch (error) {
    code = (error as GatewayError).code
  }
  return { text, code, ends }
}

test('a complete response leaves its connection to the next one', async () => {
  expect(await passed(undefined, true)).toEqual({ text: 'words+close', code: undefined, ends: ['released'] })
})

test.each(['upstream_cut', 'upstream_timeout'] as const)(
  '%s after a complete answer is an end like another',
  async (code) => {
    expect(await passed(new GatewayError(code, 'Lost.'), true)).toMatchObject({ text: 'words+close', code: undefined })
  },
)

test.each(['upstream_cut', 'upstream_timeout'] as const)(
  '%s before that is a failure, and drops the connection',
  async (code) => {
    expect(await passed(new GatewayError(code, 'Lost.'), false)).toEqual({ text: 'words', code, ends: ['dropped'] })
  },
)

test('any other failure is reported even after a complete response', async () => {
  const failed = await passed(new GatewayError('bad_upstream_response', 'Nonsense.'), true)
  expect(failed).toEqual({ text: 'words', code: 'bad_upstream_response', ends: ['dropped'] })
})

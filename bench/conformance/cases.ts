/** Lists what a gateway must keep of a stream: each case is played by a provider and observed by a client. */
import { ask, type Gateway, type Stream } from './client.ts'
import { type Exchange, eventOf, type Script, type Vendor } from './vendor.ts'

export type Case = {
  name: string
  /** What is true of a gateway that passes. */
  claim: string
  /** Undefined: it passes. Otherwise what was observed instead. */
  run(parts: CaseParts): Promise<string | undefined>
}

type CaseParts = {
  gateway: Gateway
  vendor: Vendor
  /** Sends a request that the vendor answers by the script. */
  play(script: Script, fields?: object): Stream
  /** How many requests of the last `play` came to the vendor. */
  tries(): number
}

/** For what must happen soon. */
const SOON_SECONDS = 3
const MANY = 200
const SENTENCE = 'Grüße, 世界 👩‍🚀!'
/** A gateway may read ahead as far as buffers of sockets and of its own go, but not whatever the vendor sends. */
const FLOOD_BYTES = 96 * 1024 * 1024
const READ_AHEAD_BYTES = 32 * 1024 * 1024

/** Requests of one process: each has a name of its own. */
let asked = 0

/** Undefined: the case passes. Otherwise what was observed instead. */
export async function runCase(one: Case, gateway: Gateway, vendor: Vendor): Promise<string | undefined> {
  const streams: Stream[] = []
  let last = ''
  const parts: CaseParts = {
    gateway,
    vendor,
    play(script, fields) {
      last = `${one.name} ${++asked}`
      vendor.scripts.set(last, script)
      const stream = ask(gateway, last, fields)
      streams.push(stream)
      return stream
    },
    tries: () => vendor.requests.get(last) ?? 0,
  }
  try {
    return await one.run(parts)
  } catch (thrown) {
    const seen = streams.at(-1)
    const status = seen?.status ? ` (HTTP ${seen.status}: ${seen.body.slice(0, 160)})` : ''
    return `${thrown instanceof Error ? thrown.message : String(thrown)}${status}`
  } finally {
    for (const { socket } of streams) socket.destroy()
  }
}

/** The chunks of a stream: JSON objects only. */
function chunksOf(stream: Stream): Record<string, unknown>[] {
  return stream.events.flatMap((data) => {
    try {
      const value: unknown = JSON.parse(data)
      return typeof value === 'object' && value !== null ? [value as Record<string, unknown>] : []
    } catch {
      return []
    }
  })
}

type Choice = { delta?: { content?: string; tool_calls?: ToolCall[] }; finish_reason?: string | null }
type ToolCall = { index: number; id?: string; function?: { name?: string; arguments?: string } }

const choicesOf = (stream: Stream) => chunksOf(stream).flatMap(({ choices }) => (choices as Choice[] | undefined) ?? [])
const textOf = (stream: Stream) =>
  choicesOf(stream)
    .map(({ delta }) => delta?.content ?? '')
    .join('')
const reasonOf = (stream: Stream) => choicesOf(stream).findLast(({ finish_reason }) => finish_reason)?.finish_reason
const isDone = (stream: Stream) => stream.events.at(-1) === '[DONE]'
const hasError = (stream: Stream) =>
  stream.status >= 400 || chunksOf(stream).some(({ error }) => error) || /^event: *error/m.test(stream.body)

const ended = async (stream: Stream): Promise<Stream> => {
  await stream.until(() => stream.end !== 'open')
  return stream
}

const expectText = (stream: Stream, text: string): string | undefined => {
  if (stream.status !== 200) return `HTTP ${stream.status}: ${stream.body.slice(0, 160)}`
  const got = textOf(stream)
  if (got !== text) return `${got.length} characters of ${text.length} came: …${JSON.stringify(got.slice(-40))}`
  return isDone(stream) ? undefined : 'the stream did not end with [DONE]'
}

/** Whether the client can know that the answer is not complete. */
const expectFailure = (stream: Stream): string | undefined => {
  if (hasError(stream) || stream.end === 'broken') return undefined
  return `the client saw a complete answer (finish_reason ${reasonOf(stream) ?? 'none'}, ${isDone(stream) ? '[DONE]' : 'no [DONE]'})`
}

const soon = async (promise: Promise<unknown>): Promise<boolean> => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), SOON_SECONDS * 1000)
  })
  const inTime = await Promise.race([promise.then(() => true), late])
  clearTimeout(timer)
  return inTime
}

const sendText = async (exchange: Exchange, text: string): Promise<void> => {
  exchange.begin()
  await exchange.event({ role: 'assistant', content: text })
  await exchange.finish()
}

/** Sends bytes in pieces, each in a write and a chunk of its own, with turns of the event loop between. */
async function inPieces(exchange: Exchange, bytes: Buffer, size: number): Promise<void> {
  for (let at = 0; at < bytes.length; at += size) {
    await exchange.chunk(bytes.subarray(at, at + size))
    await new Promise((resolve) => setImmediate(resolve))
  }
}

export const CASES: Case[] = [
  {
    name: 'order',
    claim: `${MANY} events come whole and in their order`,
    async run({ play }) {
      const words = Array.from({ length: MANY }, (_, index) => `word${index} `)
      const stream = play(async (exchange) => {
        exchange.begin()
        for (const word of words) await exchange.event({ content: word })
        await exchange.finish()
      })
      return expectText(await ended(stream), words.join(''))
    },
  },
  {
    name: 'at once',
    claim: 'an event reaches the client before the vendor sends the next',
    async run({ play }) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const stream = play(async (exchange) => {
        exchange.begin()
        await exchange.event({ content: 'first' })
        await promise
        await exchange.event({ content: ' second' })
        await exchange.finish()
      })
      await stream.until(() => textOf(stream).startsWith('first'), SOON_SECONDS)
      resolve()
      return expectText(await ended(stream), 'first second')
    },
  },
  {
    name: 'split characters',
    claim: 'a character whose bytes come in several reads stays whole',
    async run({ play }) {
      const stream = play(async (exchange) => {
        exchange.begin()
        await inPieces(exchange, Buffer.from(eventOf({ content: SENTENCE })), 1)
        await exchange.finish()
      })
      return expectText(await ended(stream), SENTENCE)
    },
  },
  {
    name: 'joined events',
    claim: 'events that come in one read are all delivered',
    async run({ play }) {
      const words = Array.from({ length: 50 }, (_, index) => `${index} `)
      const stream = play(async (exchange) => {
        exchange.begin()
        await exchange.chunk(words.map((content) => eventOf({ content })).join(''))
        await exchange.finish()
      })
      return expectText(await ended(stream), words.join(''))
    },
  },
  {
    name: 'line ends',
    claim: 'CRLF and comments of the vendor change nothing',
    async run({ play }) {
      const stream = play(async (exchange) => {
        exchange.begin()
        await exchange.chunk(': a comment\r\n\r\n')
        await exchange.chunk(eventOf({ content: 'one ' }).replaceAll('\n', '\r\n'))
        await exchange.chunk(': keep-alive\n\n')
        await exchange.chunk(eventOf({ content: 'two' }).replace('data: ', 'data:'))
        await exchange.finish()
      })
      return expectText(await ended(stream), 'one two')
    },
  },
  {
    name: 'large event',
    claim: 'an event of 1 MB comes whole',
    async run({ play }) {
      const text = 'x'.repeat(1024 * 1024)
      return expectText(await ended(play((exchange) => sendText(exchange, text))), text)
    },
  },
  {
    name: 'tool calls',
    claim: 'the arguments of two tool calls in turn come whole',
    async run({ play }) {
      const given = ['{"city":"Zürich","days":[1,2]}', '{"q":"\\"quoted\\""}']
      const tool = (index: number) => ({
        type: 'function',
        function: { name: `tool_${index}`, parameters: { type: 'object' } },
      })
      const script: Script = async (exchange) => {
        exchange.begin()
        for (const [index] of given.entries()) {
          const call = {
            index,
            id: `call_${index}`,
            type: 'function',
            function: { name: `tool_${index}`, arguments: '' },
          }
          await exchange.event({ tool_calls: [call] })
        }
        for (let at = 0; at < 40; at += 3) {
          for (const [index, text] of given.entries()) {
            const piece = text.slice(at, at + 3)
            if (piece !== '') await exchange.event({ tool_calls: [{ index, function: { arguments: piece } }] })
          }
        }
        await exchange.finish('tool_calls')
      }
      const stream = await ended(play(script, { tools: [tool(0), tool(1)] }))
      const calls = choicesOf(stream).flatMap(({ delta }) => delta?.tool_calls ?? [])
      const joined = given.map((_, index) =>
        calls
          .filter((call) => call.index === index)
          .map((call) => call.function?.arguments ?? '')
          .join(''),
      )
      if (joined.some((text, index) => text !== given[index])) return `the arguments came as ${JSON.stringify(joined)}`
      return reasonOf(stream) === 'tool_calls' ? undefined : `finish_reason ${reasonOf(stream)}`
    },
  },
  {
    name: 'finish reason',
    claim: 'the reason of an answer that was cut off comes through',
    async run({ play }) {
      const stream = play(async (exchange) => {
        exchange.begin()
        await exchange.event({ content: 'cut' })
        await exchange.finish('length')
      })
      const reason = reasonOf(await ended(stream))
      return reason === 'length' ? undefined : `finish_reason ${reason}`
    },
  },
  {
    name: 'usage',
    claim: 'the usage that the client asked for comes in the stream',
    async run({ play }) {
      const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }
      const script: Script = async (exchange) => {
        exchange.begin()
        await exchange.event({ content: 'hi' })
        await exchange.chunk(eventOf({}, { finish_reason: 'stop' }))
        await exchange.chunk(eventOf({}, { choices: [], usage }))
        await exchange.chunk('data: [DONE]\n\n')
        exchange.socket.write('0\r\n\r\n')
      }
      const stream = await ended(play(script, { stream_options: { include_usage: true } }))
      const got = chunksOf(stream).findLast((chunk) => chunk.usage)?.usage as typeof usage | undefined
      return got?.total_tokens === 18 ? undefined : `usage ${JSON.stringify(got)}`
    },
  },
  {
    name: 'together',
    claim: '50 streams at once do not mix',
    async run({ play }) {
      const streams = Array.from({ length: 50 }, (_, index) => {
        const text = `stream ${index} `
        const stream = play(async (exchange) => {
          exchange.begin()
          for (let count = 0; count < 20; count++) {
            await exchange.event({ content: text })
            await new Promise((resolve) => setImmediate(resolve))
          }
          await exchange.finish()
        })
        return { stream, text: text.repeat(20) }
      })
      for (const { stream, text } of streams) {
        const reason = expectText(await ended(stream), text)
        if (reason) return reason
      }
      return undefined
    },
  },
  {
    name: 'broken connection',
    claim: 'a vendor that breaks off is an error for the client, not the end of the answer',
    async run({ play, tries }) {
      const stream = play(async (exchange) => {
        exchange.begin()
        await exchange.event({ content: 'half of an' })
        await new Promise((resolve) => setTimeout(resolve, 50))
        exchange.socket.destroy()
      })
      const reason = expectFailure(await ended(stream))
      return reason ?? (tries() === 1 ? undefined : `${tries()} requests were sent after the first byte`)
    },
  },
  {
    name: 'early end',
    claim: 'an answer that ends in its middle, by a proper end of the body, is an error for the client',
    async run({ play }) {
      const stream = play(async (exchange) => {
        exchange.begin()
        await exchange.event({ content: 'half of an' })
        exchange.socket.write('0\r\n\r\n')
      })
      return expectFailure(await ended(stream))
    },
  },
  {
    name: 'error event',
    claim: 'an error that the vendor sends in the stream reaches the client',
    async run({ play }) {
      const stream = play(async (exchange) => {
        exchange.begin()
        await exchange.event({ content: 'half of an' })
        await exchange.chunk('data: {"error":{"message":"overloaded","type":"server_error","code":"overloaded"}}\n\n')
        exchange.socket.write('0\r\n\r\n')
      })
      await ended(stream)
      return hasError(stream) ? undefined : expectFailure(stream)
    },
  },
  {
    name: 'refusal',
    claim: 'a 429 before the stream is a 429 with its retry-after',
    async run({ play }) {
      const script: Script = (exchange) =>
        exchange.json(429, { error: { message: 'slow down', code: 'rate_limit_exceeded' } }, ['retry-after: 2'])
      const stream = await ended(play(script))
      if (stream.status !== 429) return `HTTP ${stream.status}`
      return stream.headers.has('retry-after') ? undefined : 'there was no retry-after'
    },
  },
  {
    name: 'failure',
    claim: 'a 500 before the stream is an HTTP error in JSON, not a stream',
    async run({ play }) {
      const stream = await ended(play((exchange) => exchange.json(500, { error: { message: 'broken' } })))
      if (stream.status < 500) return `HTTP ${stream.status}`
      return stream.headers.get('content-type')?.includes('json') ? undefined : 'the error was not JSON'
    },
  },
  {
    name: 'client leaves',
    claim: `the vendor's connection is closed within ${SOON_SECONDS} s of the client's`,
    async run({ play }) {
      const started = Promise.withResolvers<Exchange>()
      const stream = play(async (exchange) => {
        exchange.begin()
        await exchange.event({ content: 'begun' })
        started.resolve(exchange)
      })
      await stream.until(() => textOf(stream) === 'begun', SOON_SECONDS)
      if (!(await soon(started.promise))) return 'the request did not reach the vendor'
      const exchange = await started.promise
      stream.socket.destroy()
      return (await soon(exchange.closed)) ? undefined : 'the vendor went on generating'
    },
  },
  {
    name: 'client leaves early',
    claim: 'the same where the client leaves before the first byte',
    async run({ play }) {
      const started = Promise.withResolvers<Exchange>()
      const stream = play((exchange) => started.resolve(exchange))
      if (!(await soon(started.promise))) return 'the request did not reach the vendor'
      const exchange = await started.promise
      stream.socket.destroy()
      return (await soon(exchange.closed)) ? undefined : 'the vendor went on generating'
    },
  },
  {
    name: 'slow reader',
    claim: `a client that does not read holds the vendor back: at most ${READ_AHEAD_BYTES / 1024 / 1024} MB are read ahead`,
    async run({ play }) {
      const piece = eventOf({ content: 'y'.repeat(16 * 1024) })
      let sent = 0
      let lastWrite = Date.now()
      const stream = play(async (exchange) => {
        exchange.begin()
        while (sent < FLOOD_BYTES) {
          await exchange.chunk(piece)
          sent += piece.length
          lastWrite = Date.now()
        }
        await exchange.finish()
      })
      stream.socket.pause()
      const from = Date.now()
      // Until the vendor was held for a second.
      while (Date.now() - Math.max(lastWrite, from) < 1000 && sent < FLOOD_BYTES) {
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      if (sent === 0) return 'no byte was read of the vendor'
      return sent <= READ_AHEAD_BYTES ? undefined : `${Math.round(sent / 1024 / 1024)} MB were read ahead`
    },
  },
]

/** The check of tools before a call, of a server that answers slowly or not at all. */
import { expect, it } from 'bun:test'
import type { Client, Tool } from '@modelcontextprotocol/client'
import { manualClock } from '../../../test/kit/clock.ts'
import { createOffered } from './offered.ts'

const CALL_MS = 120_000

async function start() {
  const clock = manualClock()
  const announced: number[] = []
  const asked: { resolve(names: string[]): void; signal: AbortSignal | undefined }[] = []
  const client = {
    getServerCapabilities: () => ({ tools: {} }),
    getInstructions: () => undefined,
    getServerVersion: () => undefined,
    listTools: (_: undefined, { signal }: { signal?: AbortSignal }) =>
      new Promise<{ tools: Tool[] }>((resolve) => {
        const tools = (names: string[]) => names.map((name) => ({ name, inputSchema: { type: 'object' as const } }))
        asked.push({ resolve: (names) => resolve({ tools: tools(names) }), signal })
      }),
  } as unknown as Client
  const offered = createOffered({
    name: 'v',
    limits: { connect_ms: 15_000, call_ms: CALL_MS, max_bytes: 1 },
    clock,
    connect: async () => client,
    isConnected: () => true,
    isClosed: () => false,
    onListed() {},
    onChanged: () => void announced.push(clock.now()),
    isLost: async () => false,
    failed: (thrown) => thrown as never,
  })
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const first = offered.offer()
  await turn()
  asked[0]?.resolve(['first'])
  await first
  clock.advance(5_000)
  const check = (signal?: AbortSignal) =>
    offered.offerForCall(signal).then(
      ({ tools }) => tools.map(({ name }) => name),
      (thrown) => thrown.code ?? thrown,
    )
  return { clock, asked, check, turn, offered, announced }
}

it('ends after the time of a call, however many pages there are, and with its caller', async () => {
  const { clock, asked, check, turn } = await start()
  const leaving = new AbortController()
  const [late, left] = [check(), check(leaving.signal)]
  await turn()
  expect(asked).toHaveLength(2)
  leaving.abort('gone')
  expect(await left).toBe('gone')
  expect(asked[1]?.signal?.aborted).toBe(false)
  clock.advance(CALL_MS)
  expect(await late).toBe('upstream_timeout')
  await turn()
  expect(asked[1]?.signal?.aborted).toBe(true)
})

it('is not that of a call more than 5 s before, whose late answer counts no more', async () => {
  const { clock, asked, check, turn, offered } = await start()
  const one = check()
  await turn()
  clock.advance(4_999)
  const joined = check()
  await turn()
  expect(asked).toHaveLength(2)
  clock.advance(1)
  const other = check()
  await turn()
  expect(asked).toHaveLength(3)
  asked[2]?.resolve(['new'])
  expect(await other).toEqual(['new'])
  asked[1]?.resolve(['old'])
  expect(await Promise.all([one, joined])).toEqual([['new'], ['new']])
  expect(offered.known()?.tools.map(({ name }) => name)).toEqual(['new'])
})

it('is announced less and less often while it differs each time, the last change too, and at once after a pause', async () => {
  const { clock, asked, check, turn, announced } = await start()
  const change = async (name: string) => {
    const checking = check()
    await turn()
    asked.at(-1)?.resolve([name])
    await checking
  }
  for (let count = 0; count < 720; count++) {
    await change(`${count}`)
    clock.advance(5_000)
  }
  // An hour: after 1, 2, 4, ... 256 s, then each 300 s.
  expect(announced.length).toBeLessThan(25)
  const before = announced.length
  clock.advance(300_000)
  expect(announced).toHaveLength(before + 1)
  clock.advance(3_600_000)
  await change('later')
  expect(announced).toHaveLength(before + 2)
})

it('has a list that cannot be read once more as it was, and none where the server has no such method', async () => {
  const clock = manualClock()
  let failure: object | undefined
  const list = async () => {
    if (failure) throw failure
    return { prompts: [{ name: 'p' }], resources: [{ name: 'r', uri: 'r:1' }], resourceTemplates: [] }
  }
  const client = {
    getServerCapabilities: () => ({ prompts: {}, resources: {} }),
    getInstructions: () => undefined,
    getServerVersion: () => undefined,
    listPrompts: list,
    listResources: list,
    listResourceTemplates: list,
  } as unknown as Client
  const offered = createOffered({
    name: 'v',
    limits: { connect_ms: 15_000, call_ms: CALL_MS, max_bytes: 1 },
    clock,
    connect: async () => client,
    isConnected: () => true,
    isClosed: () => false,
    onListed() {},
    onChanged() {},
    isLost: async () => false,
    failed: (thrown) => thrown as never,
  })
  const counts = async () => {
    const { prompts, resources } = await offered.offer()
    clock.advance(60_000)
    return [prompts.length, resources.length]
  }
  expect(await counts()).toEqual([1, 1])
  failure = { code: -32603 }
  expect(await counts()).toEqual([1, 1])
  failure = { code: -32601 }
  expect(await counts()).toEqual([0, 0])
})

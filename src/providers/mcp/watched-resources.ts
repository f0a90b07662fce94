/** Subscriptions to the resources of one server: each is subscribed to once, however many clients wait for its changes. */
import type { Client } from '@modelcontextprotocol/client'
import type { Clock } from '../../kit/clock.ts'
import { GatewayError } from '../../spec/error.ts'

export type WatchedResources = ReturnType<typeof createWatchedResources>

type WatchParts = {
  connect(): Promise<Client>
  isConnected(): boolean
  timeout_ms: number
  clock: Clock
}

/** Of one server. */
const MAX_WATCHED = 1_000
/** A server that announces changes without end is passed on ten times a second. */
const UPDATE_MILLISECONDS = 100
const FIRST_WITH_LISTEN = '2026-07-28'

export function createWatchedResources({ connect, isConnected, timeout_ms: timeout, clock }: WatchParts) {
  const watched = new Map<string, Set<(uri: string) => void>>()
  const announced = new Set<string>()
  /** Changes of subscriptions, one after the other. */
  let changes: Promise<unknown> = Promise.resolve()
  let stream: { close(): Promise<void> } | undefined

  /** Protocols since 2026-07-28 have one stream for all of them. */
  async function listen(client: Client): Promise<void> {
    const before = stream
    stream =
      watched.size === 0 ? undefined : await client.listen({ resourceSubscriptions: [...watched.keys()] }, { timeout })
    await before?.close().catch(() => {})
  }

  const hasListen = (client: Client): boolean => (client.getNegotiatedProtocolVersion() ?? '') >= FIRST_WITH_LISTEN

  function change(work: (client: Client) => Promise<unknown>): Promise<unknown> {
    const mine = changes.then(async () => work(await connect()))
    changes = mine.catch(() => {})
    return mine
  }

  /** The server says that this resource has changed. */
  function updated(uri: string): void {
    const found = [...watched].filter(([one]) => uri === one || uri.startsWith(one.endsWith('/') ? one : `${one}/`))
    if (found.length === 0 || announced.has(uri) || announced.size >= MAX_WATCHED) return
    announced.add(uri)
    clock.after(UPDATE_MILLISECONDS, () => {
      announced.delete(uri)
      for (const [, listeners] of found) for (const listener of listeners) listener(uri)
    })
  }

  function leave(uri: string, listener: (uri: string) => void): void {
    const listeners = watched.get(uri)
    listeners?.delete(listener)
    if (listeners?.size !== 0) return
    watched.delete(uri)
    // A new connection knows of no subscription.
    if (!isConnected()) return
    change((client) => (hasListen(client) ? listen(client) : client.unsubscribeResource({ uri }, { timeout }))).catch(
      () => {},
    )
  }

  /** Calls the listener when the resource, or one below it, has changed. The result ends that. Rejects where the server refuses. */
  async function watch(uri: string, listener: (uri: string) => void): Promise<() => void> {
    const listeners = watched.get(uri)
    const own = (changed: string) => listener(changed)
    if (listeners) {
      listeners.add(own)
      await changes
      // The server may have refused the client before.
      if (watched.get(uri) !== listeners) return await watch(uri, listener)
    } else {
      if (watched.size >= MAX_WATCHED) {
        throw new GatewayError(
          'rate_limit_exceeded',
          `Clients have subscribed to ${MAX_WATCHED} resources of this server.`,
          { retry_after: 60 },
        )
      }
      watched.set(uri, new Set([own]))
      try {
        await change((client) => (hasListen(client) ? listen(client) : client.subscribeResource({ uri }, { timeout })))
      } catch (thrown) {
        watched.delete(uri)
        throw thrown
      }
    }
    return () => leave(uri, own)
  }

  return {
    watch,
    updated,
    /** There is a new connection, which knows of no subscription. */
    connected(client: Client): void {
      stream = undefined
      if (watched.size === 0) return
      const again = async () => {
        if (hasListen(client)) await listen(client)
        else for (const uri of watched.keys()) await client.subscribeResource({ uri }, { timeout })
        // What has changed meanwhile is not known.
        for (const uri of watched.keys()) updated(uri)
      }
      changes = changes.then(again).catch(() => {})
    },
    isUsed: () => watched.size > 0,
  }
}

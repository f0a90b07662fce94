/** A connection to Valkey or Redis with Bun's client, which sends the commands of one turn together. */
import { RedisClient } from 'bun'
import type { ValkeyConfig } from '../../config/schema/store-schema.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { createValkey, type Valkey, type ValkeyConnection, ValkeyError } from './valkey.ts'

/** Until the server has accepted TLS, the user and the password. */
const CONNECT_MILLISECONDS = 2_000

/** The server's errors may repeat the arguments of a command, which are not for the log. */
const MOST_CHARACTERS = 120

/** Connects in the background. */
export const openValkey = (
  { url, ...settings }: Required<ValkeyConfig>,
  { clock, log }: { clock: Clock; log: Log },
): Valkey => createValkey({ ...settings, connect: (onLost) => connectValkey(url, onLost), clock, log })

/**
 * `url` is `redis://<user>:<password>@<host>:<port>/<database>`, or `rediss://` for TLS with a certificate that the system
 * trusts. The client must neither reconnect nor queue: it would make commands wait while the server is down.
 */
export function connectValkey(url: string, onLost: () => void): ValkeyConnection {
  const client = new RedisClient(url, {
    autoReconnect: false,
    maxRetries: 0,
    enableOfflineQueue: false,
    connectionTimeout: CONNECT_MILLISECONDS,
  })
  client.onclose = onLost
  return {
    async open() {
      await client.connect()
    },
    async send(name, args) {
      try {
        return await client.send(name, args)
      } catch (error) {
        const { code, message } = error as { code?: string; message: string }
        if (code !== 'ERR_REDIS_SERVER_ERROR') throw error
        throw new ValkeyError('reply', message.replace(/,? with args beginning with.*$/s, '').slice(0, MOST_CHARACTERS))
      }
    },
    close: () => client.close(),
  }
}

/** The sections `store` and `valkey` of `gatehouse.yaml`: the database, and a Valkey or Redis server that gateways share. */
import type Type from 'typebox'
import { integer, oneOf, required, section, text } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'

export const StoreConfig = section({
  migrate: oneOf(
    ['auto', 'manual'],
    mark.restart,
    'auto: by a start; manual: by `gatehouse migrate apply`, for which a start waits. Needs a restart. Default auto.',
  ),
})
export type StoreConfig = Type.Static<typeof StoreConfig>

export const ValkeyConfig = section(
  {
    url: required(
      { ...mark.origin, ...mark.secret },
      'redis://<user>:<password>@<host>:<port>/<database>, or rediss:// for TLS.',
    ),
    prefix: text(
      { ...mark.shown, ...mark.variable, pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$' },
      'Of every key; gateways with the same one share. Default gatehouse.',
    ),
    timeout_ms: integer({ minimum: 1, maximum: 10_000 }, 'Wait of a call for the server. Default 100.'),
  },
  mark.restart,
  'Valkey or Redis from 6. Needs a restart.',
)
export type ValkeyConfig = Type.Static<typeof ValkeyConfig>

/** What is wrong with the address of a server, if anything; it may hold a password, which is not repeated. */
export function valkeyUrlProblem(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'redis:' && url.protocol !== 'rediss:') || url.hostname === '') {
    return (
      'must be an address such as redis://127.0.0.1:6379 or rediss://:<password>@<host>:6379/0; characters such as ' +
      '@, / and # in the password are written as %40, %2F and %23'
    )
  }
  if (!/^(|\/|\/\d{1,5})$/.test(url.pathname)) return 'has a path that is not the number of a database, such as /0'
  if (url.search || url.hash) return 'contains a query or fragment (from "?" or "#" on); must end with its path'
  return undefined
}

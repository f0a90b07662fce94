/** The webhook of an order: checks the address before the order is accepted. */
import { originsOf } from '../../jobs/signed-post.ts'
import { isPrivateHost } from '../../kit/address.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import { invalidValue } from '../../spec/error.ts'
import type { NewTask } from '../../store/store.ts'

const MAX_URL_LENGTH = 2_048

/**
 * Throws GatewayError for an address that no webhook can be sent to. A name is not resolved here: its address is checked
 * when it is called, since it may change until then, and the answer would disclose which names the network has.
 */
export function callbackOf(
  { callback_url }: { callback_url?: string },
  { callback_origins = [] }: { callback_origins?: readonly string[] },
): NewTask['callback'] {
  if (callback_url === undefined) return undefined
  const refuse = (message: string) => invalidValue('callback_url', message)
  const url = URL.parse(callback_url)
  const is_valid = url !== null && (url.protocol === 'http:' || url.protocol === 'https:')
  if (!is_valid || url.username !== '' || url.password !== '' || callback_url.length > MAX_URL_LENGTH) {
    throw refuse(
      `"callback_url" must be an http(s) URL of at most ${MAX_URL_LENGTH} characters, without a user name and password.`,
    )
  }
  if (isPrivateHost(url) && !originsOf(callback_origins).includes(url.origin)) {
    const remedy = `The operator of the gateway can allow it with tasks.callback_origins: ["${url.origin}"].`
    throw refuse(`"callback_url" leads to a private address, to which no webhook is sent. ${remedy}`)
  }
  return { callback_id: `callback_${randomAlphanumerics(24)}`, url: callback_url }
}

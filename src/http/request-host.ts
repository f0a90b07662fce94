/** Checks the `Host` header of a request. */
import { GatewayError } from '../spec/error.ts'

/** The runtime joins repeated headers with commas, which no host contains. */
export const hasSeveralHosts = ({ headers }: Request): boolean => headers.get('host')?.includes(',') === true

/** RFC 9112, section 3.2: the gateway and a proxy before it could each take another one. */
export const severalHosts = () =>
  new GatewayError('invalid_value', 'The request has several Host headers, or one with a comma; send one host.')

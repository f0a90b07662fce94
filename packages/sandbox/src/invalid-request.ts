/** The error of a request that the sandbox does not accept: as from any provider, its status was 400. */
import { GatewayError } from '../../../src/spec/error.ts'

export const invalidRequest = (message: string, param: string): GatewayError =>
  new GatewayError('upstream_invalid_request', message, { param, upstream_status: 400 })

/** Types that the tests need of the package `oidc-provider`, which has none. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  type Interaction = {
    prompt: { name: string; details: { missingOIDCScope?: string[]; missingOIDCClaims?: string[] } }
    params: { client_id: string }
  }
  class Grant {
    constructor(of: { accountId: string; clientId: string })
    addOIDCScope(scope: string): void
    addOIDCClaims(claims: string[]): void
    save(): Promise<string>
  }
  export default class Provider {
    constructor(issuer: string, settings: Record<string, unknown>)
    Grant: typeof Grant
    proxy: boolean
    callback(): (request: IncomingMessage, response: ServerResponse) => void
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
  }
}

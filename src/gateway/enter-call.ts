/** Admits a request as one of a caller: the load of the process, and what its headers ask of the call. */
import type { ServerSettings } from '../config/config.ts'
import { readCallOptions } from '../families/shared/call-options.ts'
import type { Context } from '../http/context.ts'
import type { Caller } from '../spec/token.ts'

type EntryParts = {
  settings: ServerSettings
  load: { admit(token_id: string): void }
  observation: { contents: { mayRecord: boolean; admit(context: Context): void } }
}

export function createCallEntry({ settings, load, observation }: EntryParts) {
  return {
    app: { admitLoad: load.admit, readOptions: readCallOptions, contents: observation.contents },
    /** For a caller that the app has not authenticated. Throws GatewayError. */
    enterAs(context: Context, caller: Caller): void {
      context.caller = caller
      context.note.token_id = caller.token_id
      load.admit(caller.token_id)
      readCallOptions(context, settings)
      observation.contents.admit(context)
    },
  }
}

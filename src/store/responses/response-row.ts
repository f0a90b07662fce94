/** A response as it is stored. */
import type { JsonObject } from '../../spec/task.ts'

/** A response with its own input, in the form of the Responses API. */
export type StoredResponse = {
  response_id: string
  token_id: string
  /** Whom the request named. */
  end_user?: string | undefined
  /** The previous response; it may have been removed. */
  previous_id: string | null
  created_at: number
  expires_at: number
  input: JsonObject[]
  response: JsonObject
}

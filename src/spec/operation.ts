/** Describes operations for the OpenAPI document, and how the fields of a form are typed. */
import type { TSchema } from 'typebox'
import type { ErrorCode } from './error.ts'

/** The groups of the document, and what each holds. */
export const TAGS: Record<string, string> = {
  Models: 'The catalogue: which models there are, and what they serve.',
  Chat: 'Chat in four APIs: chat completions, responses, messages and generateContent. Every chat model serves all of them.',
  Conversations: 'Stored conversations, which responses continue.',
  Embeddings: 'Vectors of texts.',
  Rerank: 'The order of documents by their relevance to a query.',
  Moderations: 'Whether texts and images are harmful.',
  Audio: 'Speech from text, and text from speech.',
  Files: 'Files that requests and batches refer to, and the output of batches.',
  Realtime: 'Sessions of speech and text over a WebSocket.',
  Images: 'Images: created, edited and varied, at once or as tasks.',
  Batches:
    'Many requests at once, executed within a day: in the form of the OpenAI API and in that of the Messages API.',
  Videos: 'Videos as tasks, in the shape of the specification.',
  'Videos, chat-compatible': 'Videos in the shape of the OpenAI API.',
  'Videos, contentgen': 'Videos in the shape of the Gemini API: long-running operations.',
  '3D models': '3D models as tasks.',
  MCP: 'Tools, resources and prompts of MCP servers, by the Model Context Protocol.',
  Passthrough: 'Paths of providers by name, where the configuration allows them.',
  Admin: 'The admin API: needs an admin token or a session, never an API token.',
  Gateway: 'The gateway itself: health, manual and this document.',
}

export type Parameter = { description: string; schema: TSchema; example?: unknown }

/** A value of the response that further requests take, such as the id of what was created. */
export type Link = {
  /** Where it is in the response: a JSON pointer. */
  at: string
  /** The requests, as the document names them: `GET /v1/videos/{video_id}`. */
  to: string[]
  /** The parameter that takes it. Default: that of the path. */
  parameter?: string
}

export type Operation = {
  summary: string
  description?: string
  /** One of TAGS. */
  tag: string
  request?: TSchema
  /** The request may have no body. */
  body_optional?: true
  /** `null` stands for an absent member in nested objects too, not only at the top. */
  nested_nulls?: true
  /** The request may also be sent as `multipart/form-data`, with files in these fields. */
  files?: string[]
  /** It may be sent as a form only. */
  form_only?: true
  /** Path parameters and their descriptions. */
  params?: Record<string, string>
  query?: Record<string, Parameter>
  headers?: Record<string, Parameter>
  response?: TSchema
  /** The schema of an event, if the response can be a stream. */
  stream?: TSchema
  /** Media types of a successful response besides JSON. */
  media?: string[]
  /** Headers of a successful response, besides those of all responses. */
  responseHeaders?: Record<string, string>
  links?: Link[]
  /** Other responses that are not errors: the description by status. */
  otherResponses?: Record<number, string>
  /** A response that is not successful and has a body of its own. */
  refusal?: { status: number; when: string; response: TSchema }
  errors?: ErrorCode[]
  example?: unknown
}

/** Of paths that name the model. */
export const MODEL_PARAMETER = {
  model: 'Model id, with or without the provider prefix; its slash may be raw or `%2F`.',
}

/**
 * In a form every value is text: these fields are converted to their JSON types. A value that cannot be converted stays
 * text, which validation rejects.
 */
export type FormFields = {
  numbers?: readonly string[]
  booleans?: readonly string[]
  objects?: readonly string[]
  /** May occur more than once. */
  lists?: readonly string[]
  files?: readonly string[]
}

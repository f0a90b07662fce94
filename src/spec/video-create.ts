/** A video request in the chat-compatible format: the specification's fields, and `input_reference`. */
import Type from 'typebox'
import { VideoRequest } from './video-request.ts'

const ReferenceObject = Type.Object({
  image_url: Type.Optional(Type.String({ minLength: 1, description: 'An http(s) URL or a data URI.' })),
  file_id: Type.Optional(Type.String({ description: 'Not supported: the gateway keeps no uploaded files.' })),
})

export const VideoCreate = Type.Object(
  {
    ...VideoRequest.properties,
    input_reference: Type.Optional(
      Type.Union([Type.String({ minLength: 1 }), ReferenceObject], {
        description: 'The same as `image`: in a form a file; else an object, an http(s) URL, a data URI or base64.',
      }),
    ),
  },
  { title: 'VideoCreate' },
)
export type VideoCreate = Type.Static<typeof VideoCreate>

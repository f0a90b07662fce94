/** A video request in the chat-compatible format: the specification's fields, and `input_reference`. */
import Type from 'typebox'
import { text, titled } from './fields.ts'
import { VideoRequest } from './video-request.ts'

const ReferenceObject = Type.Object({
  image_url: text({ minLength: 1 }, 'An http(s) URL or a data URI.'),
  file_id: text('The id of one of your files, an image or a video.'),
})

export const VideoCreate = titled('VideoCreate', {
  ...VideoRequest.properties,
  input_reference: Type.Optional(
    Type.Union([Type.String({ minLength: 1 }), ReferenceObject], {
      description: 'The same as `image`: in a form a file; else an object, an http(s) URL, a data URI or base64.',
    }),
  ),
})
export type VideoCreate = Type.Static<typeof VideoCreate>

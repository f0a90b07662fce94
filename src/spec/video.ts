/** A video in the chat-compatible format (`chatcompat-video`): the same task with other field names. */
import Type from 'typebox'
import { idList, orNull, titled } from './fields.ts'

export const Video = titled('Video', {
  id: Type.String({ description: 'The task_id.' }),
  object: Type.Literal('video'),
  model: Type.String(),
  status: Type.Enum(['queued', 'in_progress', 'completed', 'failed']),
  progress: Type.Integer({ minimum: 0, maximum: 100 }),
  created_at: Type.Integer(),
  completed_at: orNull(Type.Integer()),
  expires_at: orNull(Type.Integer(), 'When the file is deleted.'),
  prompt: Type.String(),
  seconds: Type.String(),
  size: Type.String({ description: 'Width x height, such as `1280x720`.' }),
  remixed_from_video_id: orNull(Type.String()),
  error: orNull(Type.Object({ code: Type.String(), message: Type.String() })),
})
export type Video = Type.Static<typeof Video>

export const VideoList = idList('VideoList', Video)
export type VideoList = Type.Static<typeof VideoList>

export const VideoDeleted = titled('VideoDeleted', {
  id: Type.String(),
  object: Type.Literal('video.deleted'),
  deleted: Type.Literal(true),
})
export type VideoDeleted = Type.Static<typeof VideoDeleted>

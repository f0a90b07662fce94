/** A video in the chat-compatible format (`chatcompat-video`): the same task with other field names. */
import Type from 'typebox'

export const Video = Type.Object(
  {
    id: Type.String({ description: 'The task_id.' }),
    object: Type.Literal('video'),
    model: Type.String(),
    status: Type.Enum(['queued', 'in_progress', 'completed', 'failed']),
    progress: Type.Integer({ minimum: 0, maximum: 100 }),
    created_at: Type.Integer(),
    completed_at: Type.Union([Type.Integer(), Type.Null()]),
    expires_at: Type.Union([Type.Integer(), Type.Null()], { description: 'When the file is deleted.' }),
    prompt: Type.String(),
    seconds: Type.String(),
    size: Type.String({ description: 'Width x height, such as `1280x720`.' }),
    remixed_from_video_id: Type.Union([Type.String(), Type.Null()]),
    error: Type.Union([Type.Object({ code: Type.String(), message: Type.String() }), Type.Null()]),
  },
  { title: 'Video' },
)
export type Video = Type.Static<typeof Video>

export const VideoList = Type.Object(
  {
    object: Type.Literal('list'),
    data: Type.Array(Video),
    first_id: Type.Union([Type.String(), Type.Null()]),
    last_id: Type.Union([Type.String(), Type.Null()]),
    has_more: Type.Boolean(),
  },
  { title: 'VideoList' },
)
export type VideoList = Type.Static<typeof VideoList>

export const VideoDeleted = Type.Object(
  { id: Type.String(), object: Type.Literal('video.deleted'), deleted: Type.Literal(true) },
  { title: 'VideoDeleted' },
)
export type VideoDeleted = Type.Static<typeof VideoDeleted>

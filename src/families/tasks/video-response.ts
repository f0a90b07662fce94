/** Encodes a task for the chat-compatible video API. */
import { pixelsOf } from '../../providers/orders/order-fields.ts'
import { idPage } from '../../spec/fields.ts'
import type { Task, TaskStatus } from '../../spec/task.ts'
import type { Video, VideoList } from '../../spec/video.ts'

const VIDEO_STATUS: Record<TaskStatus, Video['status']> = {
  NOT_START: 'queued',
  SUBMITTED: 'queued',
  QUEUED: 'queued',
  IN_PROGRESS: 'in_progress',
  SUCCESS: 'completed',
  FAILURE: 'failed',
}

export function encodeVideo(task: Task): Video {
  const { prompt, duration, size, aspect_ratio } = task.request
  const pixels = pixelsOf(textOf(size), textOf(aspect_ratio))
  const has_failed = task.status === 'FAILURE'
  return {
    id: task.task_id,
    object: 'video',
    model: task.model,
    status: VIDEO_STATUS[task.status],
    progress: task.progress,
    created_at: task.submit_time,
    completed_at: task.status === 'SUCCESS' ? task.finish_time : null,
    expires_at: task.status === 'SUCCESS' ? task.outputs_expire_at : null,
    prompt: textOf(prompt) ?? '',
    // Unknown where the model's own default applies.
    seconds: typeof duration === 'number' ? String(duration) : '',
    size: pixels ? `${pixels.width}x${pixels.height}` : '',
    remixed_from_video_id: null,
    error: has_failed ? { code: task.fail_code, message: task.fail_reason } : null,
  }
}

export const encodeVideoList = ({ tasks, has_more }: { tasks: Task[]; has_more: boolean }): VideoList =>
  idPage(tasks.map(encodeVideo), has_more)

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

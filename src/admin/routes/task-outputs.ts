/** The admin API's links to what tasks have generated, for who may read contents. */
import Type from 'typebox'
import { taskData } from '../../families/tasks/task-response.ts'
import type { Context, Route } from '../../http/context.ts'
import type { Outputs } from '../../outputs/outputs.ts'
import { orNull, titled } from '../../spec/fields.ts'
import type { TaskStore } from '../../store/store.ts'
import type { Audit } from '../audit/audit.ts'
import { objectIn, originOf } from './edit.ts'
import { adminRoute } from './route.ts'

type TaskOutputRouteParts = {
  tasks: Pick<TaskStore, 'find'>
  outputs: Pick<Outputs, 'link'>
  audit: Pick<Audit, 'record'>
}

const TaskOutputList = titled('AdminTaskOutputs', {
  object: Type.Literal('task.outputs'),
  task_id: Type.String(),
  outputs: Type.Array(
    Type.Object({
      content_type: Type.String(),
      url: Type.String({
        description: 'Works without a token until it expires. Of a file of the gateway, a path below its address.',
      }),
    }),
  ),
  poster: orNull(
    Type.String(),
    'The link of its preview image, where its provider gives one besides its files; null: there is none.',
  ),
})

export function taskOutputRoutes({ tasks, outputs, audit }: TaskOutputRouteParts): Route[] {
  const { found, projectOf } = objectIn('task_id', 'task', tasks.find)

  async function list(context: Context): Promise<Response> {
    const task = await found(context)
    const { task_id, project_id } = task
    const { outputs: urls = [] } = taskData(task, { outputs, base_url: '' })
    if (urls.length > 0) {
      // Recorded before anybody has seen them.
      const event = { action: 'task.read_outputs', object_type: 'task', object_id: task_id, project_id }
      await audit.record({ ...originOf(context), ...event })
    }
    const shown = urls.map((url, index) => ({ content_type: task.outputs[index]?.content_type ?? '', url }))
    return Response.json({ object: 'task.outputs', task_id, outputs: shown, poster: posterOf(shown) })
  }

  return [
    adminRoute(['GET', '/admin/v1/tasks/:task_id/outputs', { right: 'contents', project: projectOf }], {
      summary: 'Links to the outputs of a task',
      description:
        'What the task has generated, as links that expire. Only for an owner, and for the project_admin of its project. Each read is a row of the audit log.',
      params: { task_id: 'The id of a task.' },
      response: TaskOutputList,
      errors: ['storage_unavailable'],
      handle: list,
    }),
  ]
}

/** Images alone are no previews of each other. */
function posterOf(outputs: readonly { content_type: string; url: string }[]): string | null {
  const isImage = ({ content_type }: { content_type: string }) => content_type.startsWith('image/')
  return outputs.every(isImage) ? null : (outputs.find(isImage)?.url ?? null)
}

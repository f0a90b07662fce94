/** Tasks, the calls that take minutes: in flight and done, and one of them. */
import { ApiError, call } from '../../api/client.ts'
import type { Found, Page } from '../../shell/page.ts'

export const taskPages: Page[] = [
  {
    path: '/tasks',
    title: 'Tasks',
    nav: { group: 'Observe', icon: 'task' },
    load: () => import('./tasks-page.tsx').then(({ TasksPage }) => ({ Page: TasksPage })),
    find: findTasks,
  },
  {
    path: '/tasks/$task_id',
    title: 'Task',
    load: () => import('./task-page.tsx').then(({ TaskPage }) => ({ Page: TaskPage })),
  },
]

/** By its whole id. */
async function findTasks(text: string, signal: AbortSignal): Promise<Found[]> {
  if (!/^task_\w{20,}$/.test(text)) return []
  try {
    const task = await call('GET /admin/v1/tasks/{task_id}', { params: { task_id: text }, signal })
    return [{ label: task.task_id, note: `Task · ${task.model}`, to: `/tasks/${task.task_id}`, icon: 'task' }]
  } catch (error) {
    if (error instanceof ApiError) return []
    throw error
  }
}

/** Short messages at the edge of the window, from anywhere in the console. */
import { Toast } from '@base-ui/react/toast'

export const toasts = Toast.createToastManager()

export function notify(title: string, description?: string): void {
  toasts.add({ title, description, type: 'done', timeout: 5_000 })
}

export function notifyError(error: unknown): void {
  const description = error instanceof Error ? error.message : String(error)
  toasts.add({ title: 'That did not work', description, type: 'error', timeout: 12_000, priority: 'high' })
}

/** Shows the short messages of `lib/toasts.ts`. */
import { Toast } from '@base-ui/react/toast'
import { toasts } from '../lib/toasts.ts'
import { Icon } from './icon.tsx'

export function Toasts() {
  return (
    <Toast.Provider toastManager={toasts} limit={4}>
      <Toast.Portal>
        <Toast.Viewport className="toasts">
          <ToastList />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  )
}

function ToastList() {
  const manager = Toast.useToastManager()
  return manager.toasts.map((toast) => (
    <Toast.Root key={toast.id} toast={toast} className="toast" data-type={toast.type}>
      <div className="toast-text">
        <Toast.Title className="toast-title" />
        <Toast.Description className="toast-more" />
      </div>
      <Toast.Close className="button" data-icon data-kind="plain" data-size="small" aria-label="Close">
        <Icon name="close" />
      </Toast.Close>
    </Toast.Root>
  ))
}

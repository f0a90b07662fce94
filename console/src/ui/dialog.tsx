/** Dialogs: one for any content, one that asks before an act that breaks something. */
import { AlertDialog } from '@base-ui/react/alert-dialog'
import { Dialog as Base } from '@base-ui/react/dialog'
import { type ReactNode, useState } from 'react'
import { Button } from './button.tsx'

type DialogProps = {
  open: boolean
  onClose(): void
  title: string
  text?: ReactNode
  size?: 'large'
  children: ReactNode
}

export function Dialog({ open, onClose, title, text, size, children }: DialogProps) {
  return (
    <Base.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="backdrop" />
        <Base.Popup className="dialog" data-size={size}>
          <Base.Title className="dialog-title">{title}</Base.Title>
          {text && <Base.Description className="dialog-text">{text}</Base.Description>}
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

/** The buttons at the end of a dialog. */
export const DialogActs = ({ children }: { children: ReactNode }) => <div className="dialog-acts">{children}</div>

type ConfirmProps = {
  open: boolean
  onClose(): void
  title: string
  /** What the act will break: who uses the thing, and how much. */
  children: ReactNode
  /** The name of the act, such as `Revoke token`. */
  act: string
  onConfirm(): void
  isBusy?: boolean
  /** Must be typed before the act is possible. */
  typed?: string
  size?: 'large'
}

export function ConfirmDialog(props: ConfirmProps) {
  const { open, onClose, title, children, act, onConfirm, isBusy = false, typed, size } = props
  const [text, setText] = useState('')
  return (
    <AlertDialog.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <AlertDialog.Portal>
        <AlertDialog.Backdrop className="backdrop" />
        <AlertDialog.Popup className="dialog" data-size={size}>
          <AlertDialog.Title className="dialog-title">{title}</AlertDialog.Title>
          <AlertDialog.Description className="dialog-text" render={<div />}>
            {children}
          </AlertDialog.Description>
          {typed !== undefined && (
            <label className="field">
              <span className="field-label">Type {typed} to confirm</span>
              <input className="input" value={text} onChange={(event) => setText(event.target.value)} />
            </label>
          )}
          <DialogActs>
            <Button onClick={onClose}>Cancel</Button>
            <Button kind="danger" onClick={onConfirm} isBusy={isBusy} disabled={typed !== undefined && text !== typed}>
              {act}
            </Button>
          </DialogActs>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  )
}

/** Shows a secret that is readable only now: of a token, an admin token, or a login link. */
import type { ReactNode } from 'react'
import { Button } from './button.tsx'
import { Dialog, DialogActs } from './dialog.tsx'
import { Code } from './display.tsx'

type SecretProps = {
  title: string
  text: string
  /** What it is, for screen readers and the button that copies it. */
  label: string
  secret: string
  onClose(): void
  children?: ReactNode
}

export function SecretDialog({ title, text, label, secret, onClose, children }: SecretProps) {
  return (
    <Dialog open onClose={onClose} size="large" title={title} text={text}>
      <div className="stack">
        <Code label={label} text={secret} wraps />
        {children}
        <DialogActs>
          <Button kind="primary" onClick={onClose}>
            I have copied it
          </Button>
        </DialogActs>
      </div>
    </Dialog>
  )
}

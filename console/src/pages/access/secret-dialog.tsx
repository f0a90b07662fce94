/** Shows the secret of a new token once, with a call that works. */
import type { IssuedToken } from '../../api/types.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { Code } from '../../ui/display.tsx'

export function SecretDialog({ issued, model, onClose }: { issued: IssuedToken; model: string; onClose(): void }) {
  return (
    <Dialog
      open
      onClose={onClose}
      size="large"
      title={`The secret of ${issued.name}`}
      text="Copy it now: it is shown only here, and the gateway stores no more than its hash."
    >
      <div className="stack">
        <Code label="secret" text={issued.secret} wraps />
        <p className="soft">A first call with it:</p>
        <Code label="curl command" text={curlOf(issued.secret, model)} />
        <DialogActs>
          <Button kind="primary" onClick={onClose}>
            I have copied it
          </Button>
        </DialogActs>
      </div>
    </Dialog>
  )
}

export const curlOf = (secret: string, model: string): string =>
  [
    `curl ${location.origin}/v1/chat/completions \\`,
    `  -H 'authorization: Bearer ${secret}' \\`,
    `  -H 'content-type: application/json' \\`,
    `  -d '${JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }).replaceAll("'", "'\\''")}'`,
  ].join('\n')

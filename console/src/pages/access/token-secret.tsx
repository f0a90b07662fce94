/** Shows the secret of a new token once, with a call that works. */
import type { IssuedToken } from '../../api/types.ts'
import { Code } from '../../ui/display.tsx'
import { SecretDialog } from '../../ui/secret-dialog.tsx'

type SecretProps = { issued: IssuedToken; model: string | undefined; onClose(): void }

export const TokenSecret = ({ issued, model, onClose }: SecretProps) => (
  <SecretDialog
    title={`The secret of ${issued.name}`}
    text="Copy it now: it is shown only here, and the gateway stores no more than its hash."
    label="secret"
    secret={issued.secret}
    onClose={onClose}
  >
    {model ? (
      <>
        <p className="soft">A first call with it:</p>
        <Code label="curl command" text={curlOf(issued.secret, model)} />
      </>
    ) : (
      <p className="soft">It may call no chat model; the page of a model has samples of its calls.</p>
    )}
  </SecretDialog>
)

export const curlOf = (secret: string, model: string): string =>
  [
    `curl ${location.origin}/v1/chat/completions \\`,
    `  -H 'authorization: Bearer ${secret}' \\`,
    `  -H 'content-type: application/json' \\`,
    `  -d '${JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }).replaceAll("'", "'\\''")}'`,
  ].join('\n')

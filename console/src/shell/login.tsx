/** Logging in: as the whole page when nobody is, as a dialog over the page when a session was lost. */
import { Dialog } from '@base-ui/react/dialog'
import { type ReactNode, useState, useSyncExternalStore } from 'react'
import { send } from '../api/client.ts'
import { forgetLink, isLoginNeeded, loggedIn, onLoginChange, openedLink } from '../api/login-state.ts'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { useTitle } from '../ui/title.ts'
import { Brand } from './brand.tsx'
import { useLoginMethods } from './login-methods.ts'

export const useLoginNeeded = (): boolean => useSyncExternalStore(onLoginChange, isLoginNeeded)

export const useOpenedLink = (): string | undefined => useSyncExternalStore(onLoginChange, openedLink)

/** Of a login link. It waits for a click: a program that follows links in messages must not use the link up. */
export function LinkPage({ link }: { link: string }) {
  const { submit, error, isBusy } = useLogin({ link })
  return (
    <LoginCard text="To the console of this gateway, by the link that you have opened. It works once.">
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        {error !== undefined && (
          <p className="form-error" role="alert">
            {error}
          </p>
        )}
        <Button type="submit" kind="primary" isBusy={isBusy} disabled={error !== undefined}>
          Log in
        </Button>
        <Button onClick={forgetLink}>Go on without the link</Button>
      </form>
    </LoginCard>
  )
}

export const LoginPage = () => (
  <LoginCard text="To the console of this gateway.">
    <LoginForm />
  </LoginCard>
)

function LoginCard({ text, children }: { text: string; children: ReactNode }) {
  useTitle('Log in')
  return (
    <main className="login">
      <div className="login-card">
        <Brand />
        <div className="stack-small">
          <h1>Log in</h1>
          <p className="soft">{text}</p>
        </div>
        {children}
      </div>
    </main>
  )
}

/** The page behind it stays as it is, with all that was typed. */
export function LoginDialog() {
  const isNeeded = useLoginNeeded()
  return (
    <Dialog.Root open={isNeeded} modal>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop login-backdrop" />
        <Dialog.Popup className="dialog login-dialog">
          <Dialog.Title className="dialog-title">Log in again</Dialog.Title>
          <Dialog.Description className="dialog-text">
            Your session has ended. After the login this page goes on where it was; nothing that you typed is lost.
          </Dialog.Description>
          <LoginForm />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function LoginForm() {
  const [secret, setSecret] = useState('')
  const methods = useLoginMethods()
  const { submit, error, isBusy } = useLogin(bodyOf(secret))

  return (
    <>
      {methods.includes('oidc') && (
        <>
          <OidcButton />
          <div className="login-rule">or</div>
        </>
      )}
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <TextField
          label="Admin token"
          type="password"
          autoComplete="current-password"
          required
          value={secret}
          onChange={setSecret}
          error={error}
        />
        <Button type="submit" kind="primary" isBusy={isBusy}>
          Log in
        </Button>
      </form>
      <Help>
        No token? <code>gatehouse admin login</code> prints a link that logs you in.
      </Help>
    </>
  )
}

function useLogin(body: Record<string, string>) {
  const [error, setError] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  async function submit(): Promise<void> {
    setBusy(true)
    setError(undefined)
    try {
      await send('POST /admin/v1/login', { body, withoutLogin: true })
      forgetLink()
      loggedIn()
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown.message : String(thrown))
    } finally {
      setBusy(false)
    }
  }
  return { submit, error, isBusy }
}

const Help = ({ children }: { children: ReactNode }) => <p className="faint">{children}</p>

/** A link that was printed may be pasted too: its secret is what follows `#`. */
function bodyOf(typed: string): Record<string, string> {
  const text = typed.trim()
  const link = /(?:#|^)(ghl-\w+)$/.exec(text)?.[1]
  return link ? { link } : { token: text }
}

/** The way to the provider leads back to this very page. */
function OidcButton() {
  const login = () => {
    const return_to = `${location.pathname}${location.search}`
    location.assign(`/admin/v1/login/oidc?${new URLSearchParams({ return_to })}`)
  }
  return (
    <Button kind="primary" onClick={login}>
      Log in with your organization
    </Button>
  )
}

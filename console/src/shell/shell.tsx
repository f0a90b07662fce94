/** The frame around every page, or the login where nobody is logged in. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Outlet, useRouterState } from '@tanstack/react-router'
import { useCallback, useEffect, useRef, useState } from 'react'
import { ApiError } from '../api/client.ts'
import { meQuery } from '../api/hooks.ts'
import { onLoginChange } from '../api/login-state.ts'
import { chooseProject, chosenProject } from '../lib/project.ts'
import { Failed, Loading } from '../ui/states.tsx'
import { Toasts } from '../ui/toasts.tsx'
import { Bar } from './bar.tsx'
import { LinkPage, LoginDialog, LoginPage, useLoginNeeded, useOpenedLink } from './login.tsx'
import { ManualPanel } from './manual-panel.tsx'
import { Side } from './navigation.tsx'
import { Palette, usePaletteKey } from './palette.tsx'

export function Shell() {
  const me = useQuery(meQuery)
  const isLoginNeeded = useLoginNeeded()
  useIdentityOfSession()
  useProjectThatExists(me)
  const link = useOpenedLink()
  if (link !== undefined) return <LinkPage key={link} link={link} />
  if (me.data) return <Frame />
  if (isLoginNeeded) return <LoginPage />
  return (
    <main className="login">
      <h1 className="hidden-text">Gatehouse console</h1>
      {me.error ? <Failed error={me.error} onRetry={() => void me.refetch()} /> : <Loading lines={3} />}
    </main>
  )
}

function Frame() {
  const [isPaletteOpen, setPaletteOpen] = useState(false)
  const openPalette = useCallback(() => setPaletteOpen(true), [])
  const [isHelpOpen, setHelpOpen] = useState(false)
  const isBusy = useRouterState({ select: ({ status }) => status === 'pending' })
  const main = useRef<HTMLElement>(null)
  usePaletteKey(openPalette)
  useFocusOnPage(main)
  return (
    <>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      {isBusy && <div className="progress" aria-hidden="true" />}
      <div className="frame" data-help={isHelpOpen || undefined}>
        <Side />
        <div>
          <Bar onSearch={openPalette} isHelpOpen={isHelpOpen} onHelp={() => setHelpOpen(!isHelpOpen)} />
          <main className="content" id="content" tabIndex={-1} ref={main}>
            <Outlet />
          </main>
        </div>
        {isHelpOpen && (
          <ManualPanel
            onClose={() => {
              setHelpOpen(false)
              document.querySelector<HTMLElement>('.bar [aria-label=Help]')?.focus()
            }}
          />
        )}
      </div>
      <Palette open={isPaletteOpen} onClose={() => setPaletteOpen(false)} />
      <LoginDialog />
      <Toasts />
    </>
  )
}

/** Another page begins at its start for the keyboard and the screen reader too. */
function useFocusOnPage(main: React.RefObject<HTMLElement | null>): void {
  const path = useRouterState({ select: ({ location }) => location.pathname })
  const former = useRef(path)
  useEffect(() => {
    if (former.current !== path) main.current?.focus({ preventScroll: true })
    former.current = path
  }, [path, main])
}

/** Who is no longer in the chosen project acts in another one. */
function useProjectThatExists({ error, refetch }: { error: Error | null; refetch(): unknown }): void {
  const isGone = error instanceof ApiError && error.status === 404 && chosenProject() !== undefined
  useEffect(() => {
    if (!isGone) return
    chooseProject(undefined)
    void refetch()
  }, [isGone, refetch])
}

/** Another person may have logged in, with other rights: nothing that was read before stands. */
function useIdentityOfSession(): void {
  const client = useQueryClient()
  useEffect(() => onLoginChange(() => void client.invalidateQueries()), [client])
}

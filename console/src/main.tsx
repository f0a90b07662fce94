/** Starts the console in the browser. */
import { CSPProvider } from '@base-ui/react/csp-provider'
import { Tooltip } from '@base-ui/react/tooltip'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { shouldRetry } from './api/hooks.ts'
import { takeLoginLinks } from './api/login-state.ts'
import { setKnownPaths } from './lib/known-paths.ts'
import { applyTheme } from './lib/theme.ts'
import { pages } from './pages/pages.ts'
import { router } from './router.tsx'
import { PagesContext } from './shell/registry.ts'

applyTheme()
takeLoginLinks()
setKnownPaths(pages.map(({ path }) => path))

const client = new QueryClient({
  defaultOptions: { queries: { retry: shouldRetry, staleTime: 10_000, refetchOnWindowFocus: true } },
})

const place = document.getElementById('console')
if (place)
  createRoot(place).render(
    <StrictMode>
      <CSPProvider disableStyleElements>
        <QueryClientProvider client={client}>
          <PagesContext value={pages}>
            <Tooltip.Provider delay={400}>
              <RouterProvider router={router} />
            </Tooltip.Provider>
          </PagesContext>
        </QueryClientProvider>
      </CSPProvider>
    </StrictMode>,
  )

/** The colour scheme: that of the system, or the one chosen in this browser. */
export type Theme = 'system' | 'light' | 'dark'
const KEY = 'gatehouse.theme'

export const chosenTheme = (): Theme => {
  const stored = localStorage.getItem(KEY)
  return stored === 'light' || stored === 'dark' ? stored : 'system'
}

export function chooseTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(KEY)
  else localStorage.setItem(KEY, theme)
  applyTheme()
}

export function applyTheme(): void {
  const theme = chosenTheme()
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
  window.dispatchEvent(new Event('gatehouse-theme'))
}

/** Called when the colours change, by choice or by the system. */
export function onThemeChange(listener: () => void): () => void {
  const system = matchMedia('(prefers-color-scheme: dark)')
  system.addEventListener('change', listener)
  window.addEventListener('gatehouse-theme', listener)
  return () => {
    system.removeEventListener('change', listener)
    window.removeEventListener('gatehouse-theme', listener)
  }
}

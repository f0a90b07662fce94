/** The pages of the console, handed to the frame by the table of all pages. */
import { createContext, useContext } from 'react'
import type { Page } from './page.ts'

export const PagesContext = createContext<readonly Page[]>([])
export const usePages = (): readonly Page[] => useContext(PagesContext)

/** The rows of a provider of the `ai` package: one for each major. */
import type { Gateway, Row, Unsupported } from '../types.ts'
import { type AiProvider, ai } from './ai.ts'
import { AI_5, AI_6, AI_7 } from './ai-majors.ts'

/** The provider's package for one major of `ai`: its name in our package file, and its own factory. */
export type ProviderMajor<Create> = [name: string, create: Create, unsupported?: Unsupported[]]

type Parts<Create> = Pick<Row, 'base' | 'dialect' | 'unsupported'> & {
  /** As the manual names it after the major of `ai`. */
  name: string
  /** For `ai` 7, 6 and 5. */
  majors: [ProviderMajor<Create>, ProviderMajor<unknown>, ProviderMajor<unknown>]
  provider(create: Create, gateway: Gateway): AiProvider
}

export const aiRows = <Create>({ name, majors, provider, ...row }: Parts<Create>): Row[] =>
  [AI_7, AI_6, AI_5].map((major, at) => {
    const [packageName, create, unsupported = []] = majors[at] as ProviderMajor<Create>
    return {
      ...row,
      name: `\`ai\` ${major.major}, ${name}`,
      packages: [major.packageName, packageName],
      unsupported: [...row.unsupported, ...unsupported],
      // The types used here are the same in all majors, which TypeScript cannot know.
      connect: (gateway) => ai(provider(create, gateway), major),
    }
  })

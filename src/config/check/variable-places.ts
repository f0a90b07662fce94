/** Decides in which settings a variable of the environment may be filled in. */
import { isFileReference } from '../load/interpolate.ts'
import { isMarked, schemasAt } from '../schema/schema-at.ts'

type Path = readonly (string | number)[]

/** Variables with secrets of the gateway itself: in any setting, they would be sent or shown somewhere else. */
const OWN_SECRETS = [
  'GATEHOUSE_ADMIN_TOKEN',
  'GATEHOUSE_BOOTSTRAP_TOKEN',
  'GATEHOUSE_CONTENTS_KEY',
  'GATEHOUSE_CONTENTS_KEY_OLD',
  'GATEHOUSE_DATABASE_URL',
]

/**
 * Why the variables may not be filled in at this place, if so: answers of the APIs show names, labels and texts such as
 * those of models, so only secrets, locations, numbers, booleans and enumerated values take variables.
 */
export function expansionProblem(path: Path, references: readonly string[]): string | undefined {
  const names = references.filter((reference) => !isFileReference(reference))
  if (names.length === 0) return undefined // where a file may stand, `secretFileProblem` decides
  const own = names.find((name) => OWN_SECRETS.includes(name))
  if (own !== undefined) return `may not contain \${${own}}: it is a secret that only the gateway itself reads`
  if (isMarked('secret', path) || isMarked('variable', path)) return undefined
  const schemas = schemasAt(path)
  const isText = schemas.length > 0 && schemas.every(({ type, enum: words }) => type === 'string' && !words)
  if (!isText) return undefined
  return 'may not contain a variable, since the API shows this setting; write the text itself ("$${" stands for "${")'
}

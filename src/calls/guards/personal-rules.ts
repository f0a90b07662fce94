/** Personal data by its form, and by its check digits where it has some. */
import type { PersonalData } from '../../config/schema/guard-schema.ts'
import {
  isBsn,
  isCard,
  isCodiceFiscale,
  isCpf,
  isDni,
  isGermanTaxId,
  isIban,
  isNir,
  isPersonnummer,
  isPesel,
  isUsSsn,
} from '../../kit/patterns/check-digits.ts'
import type { Rule } from './rule.ts'

type Row = Omit<Rule, 'name' | 'label'> & {
  label: string
  /** Only by its name, and not as one of `personal_data`: other numbers often look the same. */
  is_separate?: true
}

/** Spaces and hyphens, and those that keep a line from breaking, as texts from pages and documents have them. */
const SEPARATOR = '[ \\x{a0}\\x{202f}\\x{2011}-]?'

export const PERSONAL_RULES: Record<PersonalData, Row> = {
  email: {
    label: 'EMAIL',
    source: "\\b[a-z0-9][a-z0-9._%+'-]{0,63}@(?:[a-z0-9-]{1,63}\\.){1,8}[a-z]{2,24}\\b",
    ignores_case: true,
  },
  /** E.164 in full, with a country code: at least eight digits, with the separators that people write. */
  phone: {
    label: 'PHONE',
    source: '(?:\\+|\\b00)[1-9][0-9]{0,2}(?:[ .()/-]{0,2}[0-9]{1,5}){2,6}\\b',
    isValid: isPhone,
  },
  card: { label: 'CARD', source: `\\b[0-9](?:${SEPARATOR}[0-9]){12,18}\\b`, isValid: isCard },
  iban: {
    label: 'IBAN',
    source: `\\b[A-Z]{2}[0-9]{2}(?:${SEPARATOR}[A-Z0-9]){11,30}\\b`,
    ignores_case: true,
    isValid: isIban,
  },
  us_ssn: { label: 'SSN', source: '\\b[0-9]{3}(?:-[0-9]{2}-| [0-9]{2} )[0-9]{4}\\b', isValid: isUsSsn },
  br_cpf: { label: 'ID', source: '\\b[0-9]{3}\\.?[0-9]{3}\\.?[0-9]{3}-?[0-9]{2}\\b', isValid: isCpf },
  de_tax_id: { label: 'ID', source: '\\b[1-9][0-9](?: ?[0-9]{3}){3}\\b', isValid: isGermanTaxId },
  es_dni: { label: 'ID', source: '\\b[XYZ0-9][- ]?[0-9]{7}[- ]?[A-Z]\\b', ignores_case: true, isValid: isDni },
  fr_nir: {
    label: 'ID',
    source: '\\b[12] ?[0-9]{2} ?[0-9]{2} ?[0-9][0-9AB] ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}\\b',
    ignores_case: true,
    isValid: isNir,
  },
  it_codice_fiscale: {
    label: 'ID',
    source: '\\b[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]\\b',
    ignores_case: true,
    isValid: isCodiceFiscale,
  },
  nl_bsn: { label: 'ID', source: '\\b[0-9]{9}\\b', isValid: isBsn, is_separate: true },
  pl_pesel: { label: 'ID', source: '\\b[0-9]{11}\\b', isValid: isPesel },
  se_personnummer: { label: 'ID', source: '\\b(?:19|20)?[0-9]{6}[-+][0-9]{4}\\b', isValid: isPersonnummer },
}

/** ITU-T E.164: at most 15 digits; fewer than 8 are too short to tell from other numbers. */
function isPhone(text: string): boolean {
  const { length } = text.replace(/\D/g, '').replace(/^00/, '')
  return length >= 8 && length <= 15
}

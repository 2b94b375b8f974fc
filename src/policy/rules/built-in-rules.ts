/**
 * The built-in rules of guardrails: secrets and personal data. An expression finds the candidates; a check,
 * such as a checksum, decides. `docs/how-to/guardrails.md` lists them.
 */

/** A rule: an expression, and what it cannot express. */
export interface Rule {
  /** A match is replaced by `[name]`. */
  readonly name: string
  /** In RE2 syntax. */
  readonly expression: string
  /** No digit may be directly before or after a match. */
  readonly isSeparate?: true
  /** Whether a candidate is a match. */
  readonly check?: (candidate: string) => boolean
  /** The match continues to the end of this text, which follows it, else to the end of the whole text. */
  readonly until?: (match: string) => string
  /** Every match contains one of these. */
  readonly needs?: readonly string[]
}

const EMAIL_CHAR = "A-Za-z0-9!#$%&'*+/=?^_{}~-"
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
/** Between two digits of a phone number: a space, dot or hyphen, and a bracket with another of them. */
const PHONE_GAP = '[ .-]?(?:[()][ .-]?)?'

/** Rules for `patterns`. */
const SECRETS: readonly Rule[] = [
  {
    name: 'aws_access_key',
    expression: String.raw`\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b`,
    needs: ['AKIA', 'ASIA', 'ABIA', 'ACCA'],
  },
  {
    name: 'private_key',
    expression: '-----BEGIN [A-Z0-9 ]{0,64}PRIVATE KEY-----',
    until: (begin) => begin.replace('BEGIN', 'END'),
    needs: ['-----BEGIN '],
  },
  {
    name: 'github_token',
    expression: String.raw`\bgh[pousr]_[A-Za-z0-9]{36,255}\b|\bgithub_pat_[A-Za-z0-9_]{82}\b`,
    needs: ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_'],
  },
  {
    name: 'slack_token',
    expression: String.raw`\bxox[abeoprs]-[A-Za-z0-9-]{10,250}`,
    needs: ['xox'],
  },
  {
    name: 'google_api_key',
    expression: String.raw`\bAIza[A-Za-z0-9_-]{35}`,
    needs: ['AIza'],
  },
  {
    name: 'llm_api_key',
    expression: String.raw`\bsk-[A-Za-z0-9_-]{20,250}`,
    needs: ['sk-'],
  },
  {
    name: 'stripe_key',
    expression: String.raw`\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,250}\b`,
    needs: ['k_live_', 'k_test_'],
  },
  {
    name: 'jwt',
    expression: String.raw`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`,
    needs: ['.eyJ'],
  },
]

/** Rules for `detect`. */
const PERSONAL: readonly Rule[] = [
  {
    name: 'email',
    expression:
      `[${EMAIL_CHAR}](?:[.${EMAIL_CHAR}]{0,62}[${EMAIL_CHAR}])?` +
      String.raw`@(?:${LABEL}\.)+[A-Za-z]{2,24}`,
    needs: ['@'],
  },
  {
    name: 'phone',
    expression:
      String.raw`\+[(]?[0-9](?:${PHONE_GAP}[0-9]){7,14}` +
      String.raw`|(?:\([0-9]{3}\) |[0-9]{3}-)[0-9]{3}-[0-9]{4}|[0-9]{3}\.[0-9]{3}\.[0-9]{4}`,
    isSeparate: true,
  },
  {
    name: 'card',
    expression: '[2-6](?:[ -]?[0-9]){12,18}',
    isSeparate: true,
    check: (candidate) => isLuhnValid(candidate.replace(/[ -]/g, '')),
  },
  {
    name: 'iban',
    expression: '[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}',
    check: isIban,
  },
  {
    name: 'us_ssn',
    expression: '[0-9]{3}(?:-[0-9]{2}-| [0-9]{2} )[0-9]{4}',
    isSeparate: true,
    check: isSocialSecurityNumber,
  },
]

const BY_NAME = new Map([...SECRETS, ...PERSONAL].map((rule) => [rule.name, rule]))

/** The names that `patterns` may have besides expressions. */
export const SECRET_NAMES: readonly string[] = SECRETS.map(({ name }) => name)
/** The names that `detect` may have. */
export const PERSONAL_NAMES = ['email', 'phone', 'card', 'iban', 'us_ssn'] as const

/** The built-in rule; undefined if there is none of that name. */
export function builtInRule(name: string): Rule | undefined {
  return BY_NAME.get(name)
}

/** ISO/IEC 7812-1, annex B. */
function isLuhnValid(digits: string): boolean {
  let sum = 0
  for (let index = 0; index < digits.length; index += 1) {
    const digit = Number(digits[digits.length - 1 - index])
    const doubled = index % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** The length by country, of the IBAN registry (SWIFT, release 99). */
const IBAN_LENGTHS: Readonly<Record<string, number>> = Object.fromEntries(
  (
    'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 ' +
    'EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 ' +
    'IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 ' +
    'NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 ' +
    'SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30'
  )
    .split(' ')
    .map((item) => [item.slice(0, 2), Number(item.slice(2))]),
)

/** ISO 13616: bare, or in groups of four. */
function isIban(candidate: string): boolean {
  const bare = candidate.replaceAll(' ', '')
  if (IBAN_LENGTHS[bare.slice(0, 2)] !== bare.length) return false
  if (candidate !== bare && candidate !== bare.replace(/(.{4})(?=.)/g, '$1 ')) return false
  let remainder = 0
  for (const char of bare.slice(4) + bare.slice(0, 4)) {
    const value = parseInt(char, 36)
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97
  }
  return remainder === 1
}

function isSocialSecurityNumber(candidate: string): boolean {
  const [area, group, serial] = [candidate.slice(0, 3), candidate.slice(4, 6), candidate.slice(7)]
  if (area === '000' || area === '666' || area >= '900') return false
  return group !== '00' && serial !== '0000'
}

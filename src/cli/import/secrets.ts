/**
 * The secrets of an import: references to variables stay references, and literal secrets become variables of
 * `.env`, which is the only file that has them.
 */

/** A value of the new configuration, and how it was made. */
interface PlacedSecret {
  /** The text for the configuration: `${NAME}`. */
  readonly text: string
  readonly variable: string
  readonly isLiteral: boolean
}

const REFERENCE = /^os\.environ\/([A-Za-z_][A-Za-z0-9_]*)$/
/** References to vaults and issuers, which only LiteLLM resolves. */
const FOREIGN_REFERENCE =
  /^(?:oidc|azure_key_vault|hashicorp_vault|google_secret_manager|aws_secret_manager)\//

/** The variable that a whole value refers to; null for other values. */
export function variableOf(value: unknown): string | null {
  return typeof value === 'string' ? (REFERENCE.exec(value.trim())?.[1] ?? null) : null
}

/** Whether the value refers to a secret that only LiteLLM can read. */
export function isForeignReference(value: unknown): boolean {
  return typeof value === 'string' && FOREIGN_REFERENCE.test(value.trim())
}

/** Gives literal secrets names, the same for the same secret. */
export class ImportedSecrets {
  private readonly taken: Set<string>
  private readonly byValue = new Map<string, string>()
  private readonly values = new Map<string, string>()

  /** `taken`: the variables that the configuration refers to, also those that it does not name. */
  constructor(taken: ReadonlySet<string>) {
    this.taken = new Set(taken)
  }

  /** The variable for a value, which is a reference or a literal secret. `usual`: the name of a new one. */
  place(value: string, usual: string): PlacedSecret {
    const reference = variableOf(value)
    if (reference !== null) return { text: `\${${reference}}`, variable: reference, isLiteral: false }
    const known = this.byValue.get(`${usual}\0${value}`)
    const variable = known ?? this.freeName(usual)
    this.byValue.set(`${usual}\0${value}`, variable)
    this.values.set(variable, value)
    return { text: `\${${variable}}`, variable, isLiteral: true }
  }

  /** A variable of the configuration's own list. */
  set(name: string, value: string): void {
    this.values.set(name, value)
  }

  /** The value of a variable in `.env`; undefined if it is not there. */
  get(name: string): string | undefined {
    return this.values.get(name)
  }

  /** Whether the text contains a literal secret of more than a few characters. */
  isIn(text: string): boolean {
    return [...this.values.values()].some((value) => value.length >= 8 && text.includes(value))
  }

  /** The text of `.env`; null if it has no variable. */
  envText(): string | null {
    if (this.values.size === 0) return null
    return [...this.values].map(([name, value]) => `${name}=${quoted(value)}\n`).join('')
  }

  private freeName(usual: string): string {
    let name = usual
    for (let number = 2; this.taken.has(name); number += 1) name = `${usual}_${number}`
    this.taken.add(name)
    return name
  }
}

/** A value as shells and readers of such files take it. */
function quoted(value: string): string {
  if (/^[A-Za-z0-9_./:@%+=,-]*$/.test(value)) return value
  return value.includes("'") ? JSON.stringify(value) : `'${value}'`
}

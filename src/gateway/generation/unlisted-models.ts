/** Names of served models that the catalogue does not list and that usage sums count separately. */

/** Maximum per process and generation, because clients choose the names. */
const MAX_NAMES = 200
const MODEL_NAME = /^[\w.:/@-]{1,128}$/

/** The first served names, up to a maximum. */
export class UnlistedModels {
  private readonly names = new Set<string>()

  /** Whether sums count a served model under its own name. Adds the name if the maximum is not reached. */
  counts(model: string): boolean {
    if (!MODEL_NAME.test(model)) return false
    if (this.names.size < MAX_NAMES) this.names.add(model)
    return this.names.has(model)
  }
}

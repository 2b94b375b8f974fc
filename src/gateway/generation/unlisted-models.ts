/** Names of served models that the catalogue does not list, as far as sums tell them apart. */

/** For each process and generation: clients choose names. */
const MAX_NAMES = 200
const MODEL_NAME = /^[\w.:/@-]{1,128}$/

/** The first names that were served. */
export class UnlistedModels {
  private readonly names = new Set<string>()

  /** Whether a model that was served counts by its own name; adds the name if there is room. */
  counts(model: string): boolean {
    if (!MODEL_NAME.test(model)) return false
    if (this.names.size < MAX_NAMES) this.names.add(model)
    return this.names.has(model)
  }
}

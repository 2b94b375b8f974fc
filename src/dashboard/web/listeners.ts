/** Whom a change of a value outside React re-renders. Pure. */
export class Listeners {
  private readonly all = new Set<() => void>()

  /** For `useSyncExternalStore`. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.all.add(listener)
    return () => this.all.delete(listener)
  }

  /** The value has changed. */
  readonly tell = (): void => {
    for (const listener of this.all) listener()
  }
}

/** Loads a library as seen from this folder, where its like are installed. */
export const load = (name) => import(name)

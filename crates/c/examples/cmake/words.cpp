// Counts the words that it is given, in the store `words-cpp` here.

#include <iostream>
#include <iterator>

#include "trommel.hpp"

int main(int count, char **words) try {
    trommel::Db db("words-cpp");
    for (int at = 1; at < count; ++at) db.fetch_add(words[at], 1);
    if (count < 2) {
        for (const char *word : {"drum", "tuba", "drum"}) db.fetch_add(word, 1);
    }
    auto all = db.scan(trommel::Range::all().keys_only());
    std::cout << std::distance(all.begin(), all.end()) << " words\n";
    db.close();
} catch (const trommel::Error &error) {
    std::cerr << "words: " << error.what() << '\n';
    return 1;
}
